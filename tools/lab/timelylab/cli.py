# SPDX-License-Identifier: GPL-2.0
"""The virtual-time testbed: run scenarios in guests, make tables and plots.

    lab list
    lab run SCENARIO [--cc LIST] [--seeds LIST] [--out DIR] [--page FILE] ...
    lab report DIR
    lab page DIR... [--out FILE]
    lab verify DIR
    lab cell DIGEST [NUMBER]

A cell is one congestion control with one seed. Each cell runs in a guest of its own, so that
cells do not disturb each other. All tables and plots are made from raw results.
"""
import argparse
import os
import signal
import sys

from .bundle import run_in_bundle
from .common import LabError
from .elsewhere import hosts_of, options_of
from .page import load_run, write_page
from .report import write_report
from .run import Options, run_scenario
from .scenario import SCENARIOS, load_scenario, scenario_names
from .verify import verify

DESCRIPTION = "The virtual-time testbed: run scenarios in guests, make tables and plots."


def run_command(args: argparse.Namespace) -> None:
    """lab run"""
    run_scenario(Options(args.scenario, args.cc, args.seeds, args.out, args.keep, args.keep_peers,
                         args.set, args.module_param, args.kernel, args.jobs, args.page,
                         args.beside, hosts_of(args.on) if args.on is not None else (),
                         options_of(args.slurm) if args.slurm is not None else None, args.more))


def list_command(_args: argparse.Namespace) -> None:
    """lab list"""
    for name in scenario_names():
        scenario = load_scenario(os.path.join(SCENARIOS, name + ".toml"))
        print(f"{name:12} {scenario.get('title', '')}; {','.join(scenario['run']['cc'])}")


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    out = argparse.ArgumentParser(prog="lab", description=DESCRIPTION)
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the scenarios").set_defaults(call=list_command)
    add_run_options(commands.add_parser("run", help="run a scenario"))
    report = commands.add_parser("report", help="tables and plots of a run")
    report.set_defaults(call=lambda args: write_report(args.dir))
    report.add_argument("dir")
    page = commands.add_parser("page", help="one HTML page with tables and charts of runs")
    page.set_defaults(call=lambda args: write_page(args.out, [load_run(out) for out in args.dirs]))
    page.add_argument("dirs", nargs="+", metavar="DIR", help="the --out of a lab run")
    page.add_argument("--out", metavar="FILE", default="index.html",
                      help="the page (default index.html)")
    cell = commands.add_parser("cell", help="on other machines lab run uses this command")
    cell.set_defaults(call=lambda args: run_in_bundle(args.digest, args.number))
    cell.add_argument("digest")
    cell.add_argument("number", type=int, nargs="?")
    check = commands.add_parser("verify", help="compare a run with what its scenario expects")
    check.set_defaults(call=lambda args: verify(args.dir))
    check.add_argument("dir")
    return out


def add_run_options(run: argparse.ArgumentParser) -> None:
    """Add the options of lab run."""
    run.set_defaults(call=run_command)
    run.add_argument("scenario", help="a name from lab list, or a file")
    run.add_argument("--cc", metavar="LIST", help="congestion controls, separated by commas")
    run.add_argument("--seeds", metavar="LIST", help="seeds, separated by commas")
    run.add_argument("--out", metavar="DIR",
                     help="results (default lab-out/SCENARIO-TIME); replaces an earlier run")
    run.add_argument("--keep", action="store_true",
                     help="keep the cells that are in DIR: do not run them again")
    run.add_argument("--keep-peers", action="store_true",
                     help="keep only the cells in DIR that use none of this project's modules")
    run.add_argument("--set", metavar="SECTION.KEY=VALUE", action="append", default=[],
                     help="change a key of the scenario, for example run.measure_ms=100")
    run.add_argument("--module-param", metavar="NAME=VALUE", action="append", default=[],
                     help="set a parameter of tcp_timely")
    run.add_argument("--kernel", default="base", help="base, debug, or a build directory")
    run.add_argument("--jobs", type=int, metavar="N",
                     help="guests at a time, on each host (default: one per processor)")
    machines = run.add_mutually_exclusive_group()
    machines.add_argument("--on", metavar="HOSTS",
                          help="run the cells on these hosts, separated by commas, by ssh")
    machines.add_argument("--slurm", metavar="OPTIONS", nargs="?", const="",
                          help="run the cells as an array job, with these options of sbatch")
    run.add_argument("--page", metavar="FILE",
                     help="write an HTML page, again after each cell: see lab page")
    run.add_argument("--beside", metavar="DIR", action="append", default=[],
                     help="show the run in DIR on the page, too")
    run.add_argument("--more", action="store_true",
                     help="a run with --beside follows: browsers go on reloading the page")


def main() -> None:
    """Parse the command line and run the command. SIGTERM interrupts like ^C."""
    args = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        args.call(args)
    except LabError as error:
        sys.exit(f"lab: {error}")
    except KeyboardInterrupt:
        sys.exit("lab: interrupted")
