"""Starts MPI programs, with or without the preloaded library, oversubscribed on this machine."""
import os
import subprocess
import tempfile

# Neither MPI may look for networks, devices or another scheduler than this machine's.
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
           "--mca", "btl", "self,vader,tcp", "--mca", "pml", "ob1", "--mca", "mtl", "^ofi,psm,psm2",
           "--mca", "osc", "^ucx"]
MPICH = ["mpirun.mpich"]

# A communicator's trees are asked for and waited for at its first collective, and messages of all
# lengths go along them.
TREES_AT_ONCE = {"COPPICE_TREES_AFTER": 0, "COPPICE_TREES_MAX_BYTES": 2**31 - 1}


def variables_of_component(environment):
    """What Open MPI's components are told instead, where one is named as what is to be preloaded. The library that is
    preloaded traces."""
    folder = os.path.dirname(str(environment["LD_PRELOAD"]))
    variables = {"OMPI_MCA_mca_base_component_path": folder + ":SYS_DEFAULT"}
    if "COPPICE_TRACE" in environment:
        variables["LD_PRELOAD"] = os.path.join(os.path.dirname(folder), "libcoppice_mpi_openmpi.so")
    for name, value in environment.items():
        if name.startswith(("COPPICE_TREES", "COPPICE_REORDER")):
            variables[f"OMPI_MCA_coll_coppice_{name.removeprefix('COPPICE_').lower()}"] = value
        elif name != "LD_PRELOAD":
            variables[name] = value
    return variables


def variables_of_ranks(environment):
    """These, and what has idle ranks sleep (idle_ranks.cc), so that more ranks than cores go on."""
    if str(environment.get("LD_PRELOAD")).endswith("mca_coll_coppice.so"):
        environment = variables_of_component(environment)
    preloads = [environment.get("LD_PRELOAD"), os.environ.get("COPPICE_TEST_IDLE_RANKS")]
    return {"OMPI_MCA_mpi_yield_when_idle": 1, **environment,
            "LD_PRELOAD": ":".join(str(library) for library in preloads if library)}


def command(mpi, ranks, program, preload=None, environment=None):
    """The command line that starts `ranks` ranks of `program` (a list)."""
    preloaded = {"LD_PRELOAD": preload} if preload else {}
    variables = variables_of_ranks({**preloaded, **(environment or {})})
    line = list(OPENMPI if mpi == "openmpi" else MPICH)
    for name, value in variables.items():
        line += ["-x", f"{name}={value}"] if mpi == "openmpi" else ["-genv", name, str(value)]
    return line + ["-np", str(ranks)] + [str(word) for word in program]


def run(mpi, ranks, program, preload=None, environment=None, timeout=120, check=True, **options):
    """Its CompletedProcess; a program that fails raises with all it said."""
    done = subprocess.run(command(mpi, ranks, program, preload, environment),
                          capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{program} on {mpi}: exit {done.returncode}\n{done.stdout[-2000:]}\n"
                             f"{done.stderr[-4000:]}")
    return done


def run_beside(line, beside, timeout=900):
    """Starts a launcher's line and calls beside(its standard output) while it runs: (what it wrote after that, its
    errors). AssertionError: it failed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True) as run:
            try:
                beside(run.stdout)
                out = run.communicate(timeout=timeout)[0]
            finally:
                run.kill()
        errors.seek(0)
        text = errors.read()
    assert run.returncode == 0, text[-4000:]
    return out, text
