"""One file per dataset; the file's name is the task's name."""

if __name__ != "ragtrials.tasks":
    raise ImportError(
        f"this folder is the package 'ragtrials.tasks', imported as {__name__!r}: "
        "install the project (`make quickstart` or `pip install -e .`) and `import ragtrials.tasks`"
    )
