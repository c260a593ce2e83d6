"""Python programs as processes of their own, without the seconds that imports take.

Run as a script, it runs the code in its first argument, which imports what programs
need, then starts one process for each line it reads: code, arguments, working folder
and the files of its output, as JSON. It answers with the process's number and, when
that has ended, with its exit status.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Self

_COMMAND = """
import tempergat.cli.ui.display, tempergat.cli.ui.tables
import tempergat.data, tempergat.comparison.sweeps, tempergat.comparison.report.tables
"""


def restore_signals() -> None:
    """For `preexec_fn`: Ctrl-C works in the child also where the parent ignores it.

    A background shell and nohup ignore it, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class ProcessStarter:
    """Starts Python programs, one after another.

    Args:
        imports: Code that runs once, before all programs.
        environment: Their environment; this process's when left out.
    """

    def __init__(
        self, imports: str = _COMMAND, environment: dict[str, str] | None = None
    ) -> None:
        self._imports = imports
        self._environment = os.environ if environment is None else environment

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**self._environment, "OMP_NUM_THREADS": "1"},
            preexec_fn=restore_signals,
        )
        assert self._read() == "ready"
        return self

    def start(
        self,
        arguments: list[str],
        output: Path,
        code: str = "from tempergat.cli import main; main()",
    ) -> int:
        """Start a program, the command `tempergat` unless another is given.

        Args:
            arguments: What follows its name in `sys.argv`.
            output: The file for all that it prints.
            code: The program.

        Returns:
            The number of its process.
        """
        return self._start(code, arguments, Path.cwd(), output, output)

    def stop_at(
        self, line: str, number: int, arguments: list[str], output: Path, *code: str
    ) -> int:
        """Start a program and send a signal once it has printed a line.

        Args:
            line: How the line begins.
            number: The signal.
            arguments: As of `start`, like what follows.

        Returns:
            Its exit status, as `wait` gives it.
        """
        output.write_text("")
        process = self.start(arguments, output, *code)
        while f"\n{line}" not in "\n" + output.read_text():
            # Fails once the program has ended.
            os.kill(process, 0)
            time.sleep(0.01)
        os.kill(process, number)
        return self.wait()

    def run(
        self, code: str, *arguments: str, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            self._start(code, list(arguments), cwd or Path.cwd(), out, err)
            status = self.wait()
            texts = out.read_text(), err.read_text()
        return subprocess.CompletedProcess([code, *arguments], status, *texts)

    def _start(
        self, code: str, arguments: list[str], cwd: Path, out: Path, err: Path
    ) -> int:
        assert self._process.stdin is not None
        order = [code, arguments, *map(str, (cwd, out, err))]
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._read())

    def wait(self) -> int:
        """Wait for the program; its exit status, or minus the signal it died of."""
        return int(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _serve(imports: str) -> None:
    # The folder of this file is none of a program's.
    sys.path[0] = ""
    exec(imports, {})
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(*order)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(code: str, arguments: list[str], cwd: str, out: str, err: str) -> None:
    sys.argv = ["tempergat", *arguments]
    os.chdir(cwd)
    for number, path in ((1, out), (2, err)):
        # Appended to, because both can be one file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        os.dup2(os.open(path, flags), number)
    status = 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1])
