"""What all errors of the library that come from a server have in common."""


class PulseError(Exception):
    """An error of the server. `code`, `hint` and `detail` are those of the server; the driver's
    error is the cause."""

    def __init__(self, message: str, code: str | None = None, hint: str | None = None,
                 detail: str | None = None) -> None:
        super().__init__(f"{message}\nHINT: {hint}" if hint else message)
        self.code, self.hint, self.detail = code, hint, detail
