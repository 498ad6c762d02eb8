"""COMMAND, under a supervisor: a program that ends by itself is started anew."""
import os
import signal
import subprocess


class Program:
    def __init__(self, command, environment, output):
        self.command, self.environment, self.output = command, environment, output
        self.is_supervised = True
        self.starts = 0
        self.code = None
        self.process = None
        self.start()

    def start(self):
        self.starts += 1
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True)

    def supervise(self):
        """Called between readings of every condition. Starts a program anew that has ended."""
        if self.process.poll() is None:
            return
        self.code = self.process.returncode
        if self.is_supervised:
            self.start()

    def has_ended(self):
        return self.process.poll() is not None

    def signal(self, number):
        """To the program alone, as kill(1) does."""
        if not self.has_ended():
            self.process.send_signal(number)

    def freeze(self):
        """Stops every process of the program, as a suspended machine would."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self):
        self._signal_all(signal.SIGCONT)

    def kill(self):
        """Ends every process of the program at once, and starts none anew."""
        self.is_supervised = False
        self._signal_all(signal.SIGKILL)
        self.process.wait()

    def _signal_all(self, number):
        for pid in family(self.process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def family(self):
        return family(self.process.pid)


def family(root):
    """A process and all that descend from it, and all of its session, parents first."""
    children, members = {}, [root]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z":
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
        if int(fields[3]) == root and int(name) != root:
            members.append(int(name))
    for pid in members:
        members.extend(child for child in children.get(pid, []) if child not in members)
    return members
