"""Make machine code of kernels ahead of time, for the native machine and for WebAssembly.

Numba compiles a kernel to LLVM's intermediate representation. For each kind of processor, LLVM optimises it
and makes an object file, and a linker the library. Nothing in it calls Python or Numba's runtime, because
kernels allocate no arrays, raise no errors and count no references. Numba's own ahead-of-time compiler is
deprecated and not used.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

# Code must run on each processor of the kind, so Numba must not look at this one. It reads these once.
os.environ["NUMBA_CPU_NAME"] = "generic"
os.environ["NUMBA_CPU_FEATURES"] = ""

import llvmlite
import llvmlite.binding as llvm
import numba

from stripesim.models.documents import json_text
from stripesim.models.jit import CompiledKernel
from stripesim.models.jit.compiler import program_of
from stripesim.models.jit.origin import origin_of
from stripesim.models.jit.prebuilt import (
    LIBRARY,
    MANIFEST,
    RETURNS,
    WASM,
    machine,
    name_of,
    types_of,
)
from stripesim.models.problems import KernelError, Problem, first_problem


class TargetProcessor(NamedTuple):
    """A kind of processor that a library is made for.

    Attributes
    ----------
    name
        LLVM's name.
    features
        What such a processor has, as Linux lists it.
    """

    name: str
    features: tuple[str, ...] = ()


# The features of x86-64-v2 and v3 in the psABI of x86-64. A hash of CRUSH takes half the time with AVX2.
_V2: Final = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
_V3: Final = ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
#: Processors by architecture, newest first. The last is the oldest, whose code runs on all.
_PROCESSORS: Final = {
    "x86_64": (TargetProcessor("x86-64-v3", _V2 + _V3), TargetProcessor("x86-64")),
}
_WASM: Final = "wasm32-unknown-unknown"
_WASM_LAYOUT: Final = (
    "e-m:e-p:32:32-p10:8:8-p20:8:8-i64:64-i128:128-n32:64-S128-ni:1:10:20"
)
_WASM_FEATURES: Final = "+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals"

# Two vectors at a time: the next instruction of CRUSH's hash needs the result of the one before.
llvm.set_option(__name__, "-force-vector-interleave=2")
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


class Intermediate(NamedTuple):
    """A kernel in LLVM's representation.

    Attributes
    ----------
    name
        Name in the manifest.
    entry
        Name of the function that takes a table of words (``prebuilt.py``).
    text
        The module.
    types, returns, origin
        As in the manifest.
    """

    name: str
    entry: str
    text: str
    types: list[list[str]]
    returns: str
    origin: dict[str, str]


def intermediate_of(kernel: CompiledKernel, arguments: tuple[Any, ...]) -> Intermediate:
    """Compile a kernel for arguments of the types of an example.

    Parameters
    ----------
    kernel
        The kernel.
    arguments
        The example. Only types matter.

    Raises
    ------
    KernelError
        If the code needs more than it is given: Python, Numba's runtime, or a returned array.
    """
    name = name_of(kernel.function)
    if not hasattr(llvm, "create_pass_builder"):
        got = f"llvmlite {llvmlite.__version__}"
        raise KernelError(Problem(got=got, wanted="0.44 or later"))
    compiled = program_of(kernel.function, arguments, kernel.options)
    returns = str(compiled.signature.return_type)
    if returns not in RETURNS:
        wanted = f"one of {', '.join(RETURNS)}"
        raise KernelError(
            Problem(place=name, key="returns", got=returns, wanted=wanted)
        )
    entry = "stripesim_" + re.sub(r"\W", "_", name.removeprefix("stripesim."))
    text = compiled.library.get_llvm_str()
    text += _entry(text, compiled.fndesc.llvm_func_name, entry, returns)
    return Intermediate(
        name=name,
        entry=entry,
        text=text,
        types=[types_of(argument) for argument in arguments],
        returns=returns,
        origin=origin_of(kernel.function),
    )


def _entry(text: str, function: str, entry: str, returns: str) -> str:
    """Return the text of the function that takes a table.

    Numba's functions take a pointer to the returned value, one to an error, and each word of the arguments.
    Kernels raise no error, so the status is ignored.
    """
    types = [
        str(argument.type)
        for argument in llvm.parse_assembly(text).get_function(function).arguments
    ]
    lines = [f"define i64 @{entry}(ptr %table) {{"]
    lines.append("%returned = alloca i64")
    lines.append("%error = alloca ptr")
    lines.append("store i64 0, ptr %returned")
    passed = ["ptr %returned", "ptr %error"]
    for index, kind in enumerate(types[2:]):
        lines.append(f"%at{index} = getelementptr i64, ptr %table, i32 {index}")
        lines.append(f"%word{index} = load i64, ptr %at{index}")
        lines.append(f"%value{index} = {_converted(kind, index)}")
        passed.append(f"{kind} %value{index}")
    lines.append(f'%status = call i32 @"{function}"({", ".join(passed)})')
    lines.append("%result = load i64, ptr %returned")
    lines.append("ret i64 %result")
    return "\n" + "\n".join(lines) + "\n}\n"


def _converted(kind: str, index: int) -> str:
    """Return the instruction that converts a word to an argument's type."""
    if kind == "ptr":
        return f"inttoptr i64 %word{index} to ptr"
    if kind == "double":
        return f"bitcast i64 %word{index} to double"
    if kind == "i64":
        return f"add i64 %word{index}, 0"
    return f"trunc i64 %word{index} to {kind}"


def processors() -> tuple[TargetProcessor, ...]:
    """Return the processors that native libraries are made for, newest first."""
    architecture = llvm.get_process_triple().partition("-")[0]
    return _PROCESSORS.get(architecture, (TargetProcessor("generic"),))


def native_object(kernel: Intermediate, processor: TargetProcessor) -> bytes:
    """Return the object file of a kernel for this kind of machine and one of its `processors`."""
    triple = llvm.get_process_triple()
    return _object(kernel, kernel.text, triple, processor.name, "", "pic")


def link_native(
    kernels: Sequence[Intermediate], objects: Sequence[Sequence[bytes]], folder: Path
) -> None:
    """Write the libraries of kernels for this kind of machine, and their manifest.

    Parameters
    ----------
    kernels
        The kernels.
    objects
        The `native_object` of each kernel for each of `processors`.
    folder
        The folder to write to.

    Raises
    ------
    KernelError
        If there is no linker.
    """
    folder.mkdir(parents=True, exist_ok=True)
    libraries = []
    for processor, own in zip(processors(), zip(*objects, strict=True), strict=True):
        file = f"kernels.{processor.name}.so" if processor.features else LIBRARY
        _link_library(own, folder / file)
        libraries.append(
            {"file": file, "cpu": processor.name, "features": processor.features}
        )
    manifest = {
        "machine": machine(),
        "libraries": libraries,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "kernels": {
            kernel.name: {
                "entry": kernel.entry,
                "types": kernel.types,
                "returns": kernel.returns,
                "origin": kernel.origin,
            }
            for kernel in kernels
        },
    }
    (folder / MANIFEST).write_text(json_text(manifest, is_ascii=True), "utf-8")


def _link_library(objects: Sequence[bytes], path: Path) -> None:
    """Link object files to a library."""
    with tempfile.TemporaryDirectory() as temporary:
        parts = []
        for number, made in enumerate(objects):
            part = Path(temporary) / f"{number}.o"
            part.write_bytes(made)
            parts.append(str(part))
        linked = Path(temporary) / path.name
        # Numba's names of functions would take half of the file.
        _run([*find_linker(), "-shared", "-s", "-o", str(linked), *parts, "-lm"])
        # A process may run the library that is there, so it is replaced and not written to.
        new = path.with_name(path.name + ".new")
        shutil.copy(linked, new)
        new.replace(path)


def wasm_object(kernel: Intermediate) -> bytes:
    """Return the object file of a kernel for WebAssembly, from the same representation as the native one."""
    layout = f'target datalayout = "{_WASM_LAYOUT}"'
    text = re.sub("^target datalayout = .*$", layout, kernel.text, flags=re.M)
    return _object(kernel, text, _WASM, "generic", _WASM_FEATURES, "static")


def can_link_wasm() -> bool:
    """Return True if the Python package ziglang is installed, which has a linker for WebAssembly."""
    return importlib.util.find_spec("ziglang") is not None


def link_wasm(kernel: Intermediate, code: bytes, folder: Path) -> None:
    """Write one kernel as a WebAssembly module, which imports nothing and exports its memory.

    Raises
    ------
    KernelError
        If the linker fails.
    """
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / "kernel.o"
        made.write_bytes(code)
        linker = [sys.executable, "-m", "ziglang", "wasm-ld"]
        options = ["--no-entry", "--strip-all", "-z", "stack-size=65536"]
        exports = [f"--export={kernel.entry}", "--export=__heap_base"]
        most = ["--max-memory=2147483648"]
        _run([*linker, str(made), "-o", str(folder / WASM), *options, *exports, *most])


def _object(
    kernel: Intermediate, text: str, triple: str, cpu: str, features: str, reloc: str
) -> bytes:
    """Return the object file of a kernel, in which only the entry is visible."""
    text = re.sub(
        r"^target triple = .*$", f'target triple = "{triple}"', text, flags=re.M
    )
    text = re.sub(r'"(target-cpu|target-features|tune-cpu)"="[^"]*"', "", text)
    module = llvm.parse_assembly(text)
    for made in (*module.functions, *module.global_variables):
        if not made.is_declaration and made.name != kernel.entry:
            made.linkage = "internal"
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc=reloc, codemodel="default"
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    # LLVM uses the analyses of this builder until the code is made.
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    _verify(kernel.name, module)
    missing = [
        function.name
        for function in module.functions
        if function.is_declaration
        and not function.name.startswith("llvm.")
        and function.name not in _MATHS
    ]
    if missing:
        got = f"calls of {', '.join(missing)}"
        raise KernelError(Problem(place=kernel.name, got=got, wanted="none"))
    return bytes(target.emit_object(module))


def _verify(name: str, module: Any) -> None:
    """Check the result of LLVM's optimisation, which may be invalid code."""
    try:
        module.verify()
    except RuntimeError as error:
        got = f"invalid code from LLVM ({first_problem(error)})"
        wanted = "a loop written another way"
        raise KernelError(Problem(place=name, got=got, wanted=wanted)) from None


#: Functions of the system's mathematics library, which Numba's code calls in every process.
_MATHS: Final = {"exp", "expm1", "log", "log1p", "pow", "memset", "memcpy", "memmove"}


def find_linker() -> list[str]:
    """Return the command that links a shared library.

    Raises
    ------
    KernelError
        If there is none.
    """
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    wanted = "cc, gcc, clang or the Python package ziglang"
    raise KernelError(Problem(got="no linker", wanted=wanted))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip()[:300]
        raise KernelError(Problem(place=" ".join(command[:3]), detail=message))
