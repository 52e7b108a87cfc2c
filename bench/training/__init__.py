"""Training: a training's working space (`TrainRun`), fine-tuning and DPO on trl, checkpoints."""
