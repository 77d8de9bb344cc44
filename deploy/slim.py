"""Remove from an installation what NornWeave never loads. The image runs it; nothing else does.

``python deploy/slim.py SITE_PACKAGES`` prints what it saved. ``make check-image`` fails if a file is needed after all.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

# Below site-packages. Plugins and front ends that encoding on a CPU never opens, headers, sources, tests, maps.
UNUSED = (
    "openvino/libs/*intel_gpu*", "openvino/libs/cache.json", "openvino/libs/*intel_npu*",
    "openvino/libs/*_onnx_frontend*", "openvino/libs/*_tensorflow*", "openvino/libs/*_paddle*",
    "openvino/libs/*_pytorch*", "openvino/libs/*_jax*", "openvino/libs/*_gguf*", "openvino/include",
    "pyarrow/*flight*", "pyarrow/*_s3*", "pyarrow/include", "pyarrow/src", "pyarrow/tests", "pyarrow/**/*.pxi",
    "pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*.*",  # the same file as the .so.2600 that is loaded
    "pymupdf/mupdf-devel", "numpy/**/tests", "pip", "pip-*", "setuptools", "setuptools-*",
    "pkg_resources", "_distutils_hack", "distutils-precedence.pth",
    "uvloop", "uvloop-*", "hf_xet", "hf_xet-*",  # faster variants: of asyncio's loop, of downloads from the hub
    "**/*.map", "**/*.pyi", "**/*.pxd", "**/*.pyx", "**/*.a",
)  # fmt: skip


def main(packages: Path) -> None:
    """Remove the unused files below ``packages`` and print what that saved."""
    before = size(packages)
    for pattern in UNUSED:
        for path in [*packages.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    sys.stdout.write(f"removed {(before - size(packages)) >> 20} MB of {before >> 20} MB\n")


def size(folder: Path) -> int:
    """Return the bytes of all files below ``folder``."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
