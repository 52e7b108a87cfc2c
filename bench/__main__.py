"""`python -m ragtrials`."""

from ragtrials.cli import main

if __name__ == "__main__":
    main()
