"""`unisono kernel check`: what is wrong is found at its line, and what is right passes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kernels_support import unisono
from unisono import errors as unisono_errors
from unisono.cli import apart
from unisono.kernels import checks, parsing
from unisono.kernels.dialect import KernelError

pytestmark = pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")


def found(folder: Path, text: str, name: str = "k.cl") -> list[tuple[int, str]]:
    """Lines, and what is said of them. A line with `<-` in its comment is wrong."""
    source = folder / name
    source.write_text(text)
    return [(finding.place.line, finding.sentence) for finding in checks.check([parsing.parse(str(source))])]


def marked(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if "<-" in line]


HEAD = "#include <smi.h>\n"
WRONG = {
    "type pushed": (
        """__kernel void f(int n, SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(n, SMI_FLOAT, 1, 0, comm);
  for (int i = 0; i < n; i++) {
    double value = i;
    SMI_Push(&to, &value);  // <-
  }
}
""",
        "SMI_Push is given `&value`, of type double; the channel of port 0 opened at",
    ),
    "type popped through a typedef and a macro": (
        """#define TYPE SMI_SHORT
typedef int word;
__kernel void f(SMI_Comm comm, __global int *out) {
  SMI_Channel from = SMI_Open_receive_channel_ad(4, TYPE, 1, 3, comm, 16);
  word got[4];
  SMI_Pop(&from, &got[2]);  // <-
}
""",
        "of type word; the channel of port 3",
    ),
    "sign": (
        """__kernel void f(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, 0, comm);
  uint value = 3;
  SMI_Push(&to, &value);  // <-
}
""",
        "of type uint",
    ),
    "a result of a reduction": (
        """__kernel void f(SMI_Comm comm) {
  SMI_RChannel sums = SMI_Open_reduce_channel(1, SMI_FLOAT, SMI_ADD, 0, 0, comm);
  float own = 1; int sum;
  SMI_Reduce(&sums, &own, &sum);  // <-
}
""",
        "SMI_Reduce is given `&sum`, of type int",
    ),
    "a type in a helper that gets the channel": (
        """void give(SMI_Channel *to, float value) {
  SMI_Push(to, &value);  // <-
}
__kernel void f(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, 0, comm);
  give(&to, 1);
}
""",
        "the channel of port 0",
    ),
    "a pop of a channel that sends": (
        """__kernel void f(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, 0, comm);
  int value;
  SMI_Pop(&to, &value);  // <-
}
""",
        "SMI_Pop is for channels of receive",
    ),
    "port of an argument": (
        """__kernel void f(int n, char port, SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(n, SMI_INT, 1, port, comm);  // <-
}
""",
        "the port `port` of this send channel is known only when the program runs",
    ),
    "port of a loop": (
        """__kernel void f(SMI_Comm comm) {
  for (int p = 0; p < 4; p++) {
    SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, p, comm);  // <-
    SMI_Push(&to, &p);
  }
}
""",
        "known only when the program runs",
    ),
    "port that a loop changes": (
        """__kernel void f(SMI_Comm comm) {
  int port = 1;
  while (1) {
    SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, port, comm);  // <-
    SMI_Push(&to, &port);
    port += 1;
  }
}
""",
        "known only when the program runs",
    ),
    "no port": (
        """__kernel void f(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, 65536, comm);  // <-
}
""",
        "65536 is no port",
    ),
    "two kernels of one port": (
        """#define BASE 2
__kernel void f(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, BASE + 1, comm);
}
__kernel void g(SMI_Comm comm) {
  const int port = 3;
  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, port, comm);  // <-
}
""",
        "port 3 is used twice: this send channel and the send channel of",
    ),
    "two of one kernel at once": (
        """__kernel void f(SMI_Comm comm) {
  int v = 0;
  SMI_Channel a = SMI_Open_send_channel(2, SMI_INT, 1, 3, comm);
  SMI_Push(&a, &v);
  SMI_Channel b = SMI_Open_send_channel(2, SMI_INT, 2, 3, comm);  // <-
  SMI_Push(&b, &v);
  SMI_Push(&a, &v);
}
""",
        "may be open at once",
    ),
    "a loop that comes back to the first": (
        """__kernel void f(SMI_Comm comm) {
  int v = 0;
  SMI_Channel a = SMI_Open_send_channel(8, SMI_INT, 1, 3, comm);
  for (int i = 0; i < 8; i++) {
    SMI_Push(&a, &v);
    SMI_Channel b = SMI_Open_send_channel(1, SMI_INT, 2, 3, comm);  // <-
    SMI_Push(&b, &v);
  }
}
""",
        "may be open at once",
    ),
    "a collective and a message": (
        """__kernel void f(SMI_Comm comm) {
  SMI_BChannel all = SMI_Open_bcast_channel(8, SMI_INT, 3, 0, comm);
}
__kernel void g(SMI_Comm comm) {
  SMI_Channel from = SMI_Open_receive_channel(8, SMI_INT, 1, 3, comm);  // <-
}
""",
        "this receive channel and the bcast channel of",
    ),
    "an array of channels of one port": (
        """__kernel void f(SMI_Comm comm) {
  SMI_Channel to[2];
  for (int i = 0; i < 2; i++) to[i] = SMI_Open_send_channel(1, SMI_INT, i, 3, comm);  // <-
  for (int i = 0; i < 2; i++) SMI_Push(&to[i], &i);
}
""",
        "opened again while the one before is open",
    ),
    "a helper called twice with one port": (
        """SMI_Channel opened(int port, SMI_Comm comm) {
  return SMI_Open_send_channel(1, SMI_INT, 1, port, comm);  // <-
}
__kernel void f(SMI_Comm comm) {
  SMI_Channel a = opened(1, comm), b = opened(1, comm);
  int v = 0;
  SMI_Push(&a, &v);
  SMI_Push(&b, &v);
}
""",
        "port 1 is used twice",
    ),
    "the heap behind a macro": (
        """#include <stdlib.h>
#define GROW(n) malloc(n)
__kernel void f(int n) {
  float *a = (float *)GROW(n);  // <-
}
""",
        "memory of the heap; hardware has no place for it",
    ),
    "new": ("__kernel void f(int n) { int *a = new int[n]; }  // <-\n", "memory of the heap"),
    "an exception": ("__kernel void f(int n) {\n  if (n) throw n;  // <-\n}\n", "an exception"),
    "recursion": ("int f(int n) { return n ? f(n - 1) : 0; }  // <-\n", "recursion: f calls itself; hardware"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found_at_its_line(tmp_path: Path, case: str) -> None:
    text, sentence = WRONG[case]
    told = found(tmp_path, HEAD + text)
    assert [line for line, _ in told] == marked(HEAD + text), told
    assert all(sentence in said for _, said in told), told


def test_mutual_recursion_is_found_in_all_that_take_part(tmp_path: Path) -> None:
    text = (
        "int odd(int n);\n"
        "int even(int n) { return n == 0 ? 1 : odd(n - 1); }  // <-\n"
        "int odd(int n) { return n == 0 ? 0 : even(n - 1); }  // <-\n"
        "int fine(int n) { return even(n); }\n"
    )
    told = found(tmp_path, text)
    assert [line for line, _ in told] == marked(text)
    assert "recursion: even calls itself, by way of others" in told[0][1]


RIGHT = {
    "one after the other": """__kernel void f(SMI_Comm comm) {
  int v = 0;
  for (int i = 0; i < 8; i++) {
    SMI_Channel a = SMI_Open_send_channel(1, SMI_INT, 1, 3, comm);
    SMI_Push(&a, &v);
    SMI_Channel b = SMI_Open_send_channel(1, SMI_INT, 2, 3, comm);
    SMI_Push(&b, &v);
  }
}
""",
    "one or the other": """__kernel void f(int which, SMI_Comm comm) {
  SMI_Channel to;
  float v = 0;
  if (which) to = SMI_Open_send_channel(1, SMI_FLOAT, 1, 3, comm);
  else to = SMI_Open_send_channel(1, SMI_FLOAT, 2, 3, comm);
  SMI_Push(&to, &v);
}
""",
    "directions": """__kernel void f(SMI_Comm comm) { SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, 3, comm); }
__kernel void g(SMI_Comm comm) { SMI_Channel from = SMI_Open_receive_channel(1, SMI_INT, 1, 3, comm); }
""",
    "a helper with ports of its own": """SMI_Channel opened(int port, SMI_Comm comm) {
  return SMI_Open_send_channel(1, SMI_INT, 1, port * 2, comm);
}
__kernel void f(SMI_Comm comm) {
  int port = 1;
  SMI_Channel a = opened(port, comm);
  port++;
  SMI_Channel b = opened(port, comm);
  SMI_Push(&a, &port);
  SMI_Push(&b, &port);
}
""",
    "vectors and bytes": """typedef struct { float x, y; } point;
__kernel void f(SMI_Comm comm) {
  float4 word = 0;
  SMI_Channel a = SMI_Open_send_channel(4, SMI_FLOAT, 1, 0, comm);
  SMI_Push_vector(&a, &word, 4);
  float some[4];
  SMI_Push(&a, some);
  char c = 0;
  SMI_Channel b = SMI_Open_send_channel(1, SMI_BYTE, 1, 1, comm);
  SMI_Push(&b, &c);
}
""",
    "names that the words are part of": """int newest(int free_places) { return free_places; }
__kernel void f(int n) { int renewed = newest(n); /* throw malloc(n) */ }
""",
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_passes(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, HEAD + RIGHT[case]) == []


HOST = """#include <vector>
#include <unisono/smi.hpp>
namespace smi = unisono::smi;
template <int kPort>
void give(const smi::Group& all, float value) {
  smi::SendChannel<float> to(all, {.count = 1, .peer = 1, .port = kPort});
  to.push(value);
}
int main() {
  const smi::Group all = smi::Group::world();
  std::vector<float> of_the_host(8);
  unisono::kernel::launch("first", [&] { give<1>(all, 1); give<2>(all, 2); give<1>(all, 3); });
  unisono::kernel::wait_all();
  unisono::kernel::launch("second", [&] { give<1>(all, 1); });
%s
  unisono::kernel::wait_all();
}
"""


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", None),
        ("  unisono::kernel::launch(\"third\", [&] { give<2>(all, 1); });", None),
        ("  unisono::kernel::launch(\"third\", [&] { std::vector<int> own(3); });", "a class that uses the heap"),
        ("  unisono::kernel::launch(\"third\", [&] { smi::BcastChannel<int> c(all, {1, 0, 1}); });", "port 1 is used"),
        ("  unisono::kernel::launch(\"third\", [&] { smi::SendChannel<int> c(all, {.port = all.rank()}); });",
         "the port `all.rank()` of this send channel"),
    ],
)  # fmt: skip
def test_programs_of_cpp(tmp_path: Path, line: str, sentence: str | None) -> None:
    told = found(tmp_path, HOST % line, "k.cpp")
    if sentence is None:
        assert told == []
    else:
        assert len(told) == 1
        assert told[0][0] == 15
        assert sentence in told[0][1]


def test_programs_of_c(tmp_path: Path) -> None:
    text = """#include <unisono/smi.h>
static void run(void* argument) {
  SMI_Channel to = SMI_Open_send_channel(1, SMI_DOUBLE, 1, 4, SMI_COMM_WORLD);
  float value = *(float*)argument;
  SMI_Push(&to, &value);  // <-
}
int main(void) {
  float value = 2;
  unisono_kernel_launch(SMI_COMM_WORLD, "run", run, &value, 0, 0, 0);
}
"""
    told = found(tmp_path, text, "k.c")
    assert [line for line, _ in told] == marked(text)


def test_what_a_program_opens(tmp_path: Path) -> None:
    from unisono.kernels.walk import walk

    source = tmp_path / "k.cl"
    source.write_text(HEAD + """#define PORT(n) (1 << (n))
enum { kDegree = 24 };
static const int kCount = 3 * 5;
inline SMI_RChannel sums(int port, int root, SMI_Comm comm) {
  return SMI_Open_reduce_channel_ad(kCount, SMI_DOUBLE, SMI_MAX, port, root, comm, kDegree);
}
__kernel void f(int n, SMI_Comm comm) {
  SMI_RChannel to = sums(PORT(3), 1, comm);
  SMI_GatherChannel all = SMI_Open_gather_channel(n, n, SMI_SHORT, PORT(2) + 1, 0, comm);
}
""")  # fmt: skip
    first, second = walk(parsing.parse(str(source))).channels
    assert (first.kind, first.port, first.type, first.op) == ("reduce", 8, 7, 4)
    assert (first.count, first.degree, first.peer, first.function, first.place.line) == (15, 24, 1, "sums", 6)
    assert (second.kind, second.port, second.type, second.count, second.degree) == ("gather", 5, 12, None, None)


def test_what_cannot_be_read_is_told_by_line(tmp_path: Path) -> None:
    source = tmp_path / "k.cl"
    source.write_text("#include <smi.h>\n\n__kernel void f(int n) { nothing(n); }\n")
    with pytest.raises(KernelError, match=f"{source}:3: use of undeclared identifier 'nothing'"):
        parsing.parse(str(source))


def test_programs_by_file_or_as_one(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.cl").write_text(
            HEAD + f"__kernel void {name}(SMI_Comm comm) {{\n"
            "  SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1, PORT, comm);\n}\n"
        )
    both = [tmp_path / "a.cl", tmp_path / "b.cl"]
    apart = unisono("kernel", "check", "-D", "PORT=5", *both)
    assert (apart.returncode, apart.stdout) == (0, ""), apart.stderr
    together = unisono("kernel", "check", "--one-program", "-D", "PORT=5", *both)
    assert together.returncode == 1
    assert together.stdout.startswith(f"{tmp_path}/b.cl:3: port 5 is used twice: this send channel")


def test_without_libclang_the_source_is_read_as_text(tmp_path: Path) -> None:
    source = tmp_path / "k.cl"
    source.write_text("__kernel void f(int n) {\n  float *a = malloc(n);\n}\n")
    code = (
        "import sys; sys.modules['clang'] = None\n"
        f"from unisono.cli import main; sys.exit(main(['kernel', 'check', {str(source)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == f"{source}:2: memory of the heap; hardware has no place for it\n"
    assert "libclang is not installed" in done.stderr


NAMED = """#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>
#include <vector>
using namespace unisono::kernel;
int twice(int n) { return n < 2 ? n : twice(n - 1); }  // <-
int scaled(float alpha, std::span<const float> x, std::uint32_t to, Comm comm, CommandStream& commands,
           StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  cclo_hls::Command cclo(commands, status, comm);
  cclo_hls::Data data(to_cclo, from_cclo);
  std::vector<float> words(x.size());  // <-
  cclo.send(UNISONO_FP32, x.size(), to);
  for (float value : x) data.push(&value, sizeof value);
  if (twice(3) == 7) throw unisono::Error(1, "odd");  // <-
  return cclo.finalize();
}
const Export<scaled> kScaled{"scaled"};
"""


def test_kernels_that_hosts_call_by_name(tmp_path: Path) -> None:
    assert sorted(line for line, _ in found(tmp_path, NAMED, "k.cpp")) == marked(NAMED)
    right = "\n".join(line for line in NAMED.splitlines() if "<-" not in line)
    assert found(tmp_path, right, "right.cpp") == []


@pytest.mark.parametrize(
    "text",
    ["int f() { return " + "-" * 100_000 + "1; }", "int a = " + "+".join(["1"] * 100_000) + ";", "{" * 100_000],
    ids=["signs", "sums", "brackets"],
)
def test_what_ends_libclang_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.cpp").write_text(text)
    (tmp_path / "right.cpp").write_text("int f() { return 1; }")
    done = unisono("kernel", "check", tmp_path / "right.cpp", tmp_path / "deep.cpp")
    assert done.returncode == 2, done.stderr
    assert f"{tmp_path / 'deep.cpp'}: libclang itself ended while it was at it" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_takes_libclang_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_SECONDS", 1)

    def work(at: Callable[[str], None]) -> int:
        at("slow.cpp")
        while True:
            pass

    with pytest.raises(unisono_errors.InvalidArgumentError, match=r"slow.cpp: libclang was not done .* after 1 s"):
        apart.apart(work, "libclang")


def test_work_that_only_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_SECONDS", 1)

    def work(at: Callable[[str], None]) -> int:
        at("a.cpp")
        time.sleep(60)
        return 0

    with pytest.raises(unisono_errors.InvalidArgumentError, match=r"a\.cpp: libclang was not done with it"):
        apart.apart(work, "libclang")
