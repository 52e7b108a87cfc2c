"""RAGTrials: train and evaluate retrieval-augmented generation methods under equal conditions."""

if __name__ != "ragtrials":
    raise ImportError(
        f"this folder is the package 'ragtrials', imported as {__name__!r}: "
        "install the project (`make quickstart` or `pip install -e .`) and `import ragtrials`"
    )

__version__ = "0.1.0"
