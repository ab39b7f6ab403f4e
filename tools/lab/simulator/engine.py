# SPDX-License-Identifier: GPL-2.0
"""Compiles the simulators, which run the engines of net/timely/engine in user space."""

import os
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
NET = os.path.realpath(os.path.join(HERE, "../../../net"))
ENGINE = os.path.join(NET, "timely/engine")


def build(directory, name, parts):
    """Compile the simulator NAME.c with the engines' sources PARTS; the result is the program's path."""
    program = os.path.join(directory, name)
    sources = [os.path.join(HERE, f"{name}.c"), *(os.path.join(ENGINE, f"{part}.c") for part in parts)]
    subprocess.run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wno-sign-compare",
                    "-I", os.path.join(ENGINE, "user"), "-I", NET, "-o", program, *sources, "-lm"], check=True)
    return program
