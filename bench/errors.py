"""The two kinds of error a run can end with."""


class UserError(Exception):
    """The request was wrong: one line that names the file, field or option, and what to do.

    The command line prints it without a traceback and exits with code 2.
    """


class RunFailure(Exception):
    """A run failed while it was working; the other runs of its suite go on (exit code 1)."""
