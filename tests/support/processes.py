"""Commands as processes of their own, without the seconds that imports take.

Run as a script, it imports everything the command needs, then starts one process for
each line it reads: the command's arguments and where its output goes, as JSON. It
answers with the process's number and, when that has ended, with its exit status.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self


def restore_signals() -> None:
    """For `preexec_fn`: Ctrl-C works in the child also where the parent ignores it.

    A background shell and nohup ignore it, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class ProcessStarter:
    """Starts `tempergat` processes, one after another."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._read() == "ready"
        return self

    def start(self, arguments: list[str], output: Path) -> int:
        """Start a command; returns the number of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([arguments, str(output)]) + "\n")
        self._process.stdin.flush()
        return int(self._read())

    def wait(self) -> int:
        """Wait for the command; its exit status, or minus the signal it died of."""
        return int(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _serve() -> None:
    from tempergat import cli, data
    from tempergat.cli.ui import progress, tables
    from tempergat.study.engine import sweep
    from tempergat.study.report import tables as report

    assert all((cli, data, progress, tables, report, sweep))
    print("ready", flush=True)
    for line in sys.stdin:
        arguments, output = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(arguments, output)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(arguments: list[str], output: str) -> None:
    from tempergat.cli import main

    sys.argv = ["tempergat", *arguments]
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    status = 0
    try:
        main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
