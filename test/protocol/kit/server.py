"""Where the scenarios run: a private server of the kit, or a database that somebody has made."""
import os
import shutil
import subprocess
import tempfile

from .sql import Psql

SETTINGS = {
    "listen_addresses": "", "fsync": "off", "max_connections": "60",
    "client_connection_check_interval": "1s",
    "shared_preload_libraries": "pg_pulse", "pulse.databases": "act",
    "pulse.heartbeat_interval": "500ms", "pulse.sweep_interval": "500ms",
    "pulse.sweep_threshold": "3s", "pulse.disconnect_grace": "500ms",
    "pulse.keep_completed": "-1"}


def without_postgres(environment):
    return {name: value for name, value in environment.items() if not name.startswith("PG")}


class PrivateServer:
    """A server in a folder of its own, which the kit may restart and crash."""
    is_private = True

    def __init__(self, bindir, settings):
        """`settings`: NAME=VALUE, beside the kit's own."""
        self.bindir = bindir
        self.settings = dict(setting.split("=", 1) for setting in settings)
        self.folder = tempfile.mkdtemp(prefix="pulse-kit.", dir="/tmp")
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "server.log")
        self.environment = without_postgres(os.environ) | {
            "PGHOST": self.folder, "PGPORT": "5432", "PGUSER": "postgres", "PGDATABASE": "act"}
        self.worker_environment = self.environment | {"PGUSER": "act"}

    def _run(self, program, *arguments):
        done = subprocess.run(
            [os.path.join(self.bindir, program), "-D", self.data, *arguments],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"pulse-conformance: {program}: {done.stderr.strip()}")

    def begin(self, setup):
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                  "--no-sync")
        more = os.environ.get("TEMP_CONFIG")
        self.configure(({"include": more} if more else {}) | SETTINGS
                       | {"unix_socket_directories": self.folder} | self.settings)
        self.start()
        first = Psql(self.environment | {"PGDATABASE": "postgres"})
        first.value("CREATE DATABASE act")
        first.close()
        psql = Psql(self.environment)
        psql.value("CREATE EXTENSION pg_pulse; CREATE ROLE act LOGIN")
        psql.value("SELECT pulse.grant_worker('act'), pulse.grant_producer('act')")
        for name in setup:
            with open(name, encoding="utf-8") as file:
                psql.value(file.read())
        return psql

    def start(self):
        self._run("pg_ctl", "start", "-w", "-s", "-l", self.log)

    def stop(self, mode="fast"):
        self._run("pg_ctl", "stop", "-w", "-s", "-m", mode)

    def restart(self, mode="fast", settings=()):
        self.stop(mode)
        self.configure(dict(settings))
        self.start()

    def configure(self, settings):
        """The last line of a setting counts."""
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def end(self):
        if os.path.exists(os.path.join(self.data, "postmaster.pid")):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


class GivenDatabase:
    """A database with pg_pulse, by a connection string. Its owner runs the kit and the worker."""
    is_private = False

    def __init__(self, dsn):
        self.folder = tempfile.mkdtemp(prefix="pulse-kit.", dir="/tmp")
        shown = subprocess.run(
            ["psql", "-XAtq", dsn], text=True, stdout=subprocess.PIPE, check=False,
            input="\\echo :HOST\n\\echo :PORT\n\\echo :USER\n\\echo :DBNAME\n").stdout.split()
        if len(shown) != 4:
            raise SystemExit(f"pulse-conformance: no connection with '{dsn}'")
        names = ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE")
        self.environment = dict(os.environ) | dict(zip(names, shown))
        self.worker_environment = self.environment

    def begin(self, setup):
        psql = Psql(self.environment)
        if psql.value("SELECT count(*) FROM pulse.job") != "0":
            raise SystemExit("pulse-conformance: the database has jobs; give the kit an empty one")
        for name in setup:
            with open(name, encoding="utf-8") as file:
                psql.value(file.read())
        return psql

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)
