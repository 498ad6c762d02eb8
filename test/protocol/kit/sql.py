"""A session of psql that stays: one statement at a time, answers as text or as JSON."""
import json
import subprocess

END = "--end-of-answer--"


class Refused(Exception):
    """The server refused a statement; `code` is the SQLSTATE."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text.strip()}")
        self.code = code


class Gone(Exception):
    """The session has ended with its connection."""


class Psql:
    def __init__(self, environment):
        self.environment = environment | {"PGOPTIONS": "-c client_min_messages=warning"}
        self.process = None

    def _open(self):
        self.process = subprocess.Popen(
            ["psql", "-XAtq"], env=self.environment, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def value(self, statement):
        """The answer as psql prints it, without titles."""
        if self.process is None:
            self._open()
        try:
            self.process.stdin.write(f"{statement}\n;\n\\echo {END} :SQLSTATE\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise Gone(statement) from None
        lines = []
        for line in self.process.stdout:
            if line.startswith(END):
                code = line.removeprefix(END).strip()
                if code == "00000":
                    return "".join(lines).rstrip("\n")
                if code:
                    raise Refused(code, "".join(lines))
                break  # the connection was lost, and psql has made another
            lines.append(line)
        self.close()
        raise Gone("".join(lines) or statement)

    def rows(self, query):
        """The rows of a query as a list of dictionaries."""
        return json.loads(self.value(
            f"SELECT coalesce(json_agg(r), '[]') FROM ({query}) AS r").replace("\n", ""))

    def row(self, query):
        return (self.rows(query) or [None])[0]

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin = self.process.stdout = None
            self.process = None


def quoted(text):
    return "'" + text.replace("'", "''") + "'"
