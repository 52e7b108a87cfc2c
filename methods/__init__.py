"""One file per method; the file's name is the method's name."""

if __name__ != "ragtrials.methods":
    raise ImportError(
        f"this folder is the package 'ragtrials.methods', imported as {__name__!r}: "
        "install the project (`make quickstart` or `pip install -e .`) and `import ragtrials.methods`"
    )
