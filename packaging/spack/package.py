# SPDX-License-Identifier: BSD-3-Clause
# A recipe for Spack. packaging/README.md says how to use it, and what could be tried.

from spack.package import *


class Rankmesh(MesonPackage):
    """Turns one line that describes a parallel layout, such as pp=2,dp=4,tp=8,
    into working communication: MPI and NCCL communicators for each group of
    ranks, and objects that run the collectives of these groups."""

    license("BSD-3-Clause")

    # There is no release with an address yet: "spack dev-build" builds a folder (packaging/README.md).
    version("0.1.0")

    variant("mpi", default=True, description="Meshes and their operations")
    variant("cuda", default=False, when="+mpi", description="Device memory and NCCL")
    variant("hwloc", default=True, description="The running node as a machine")
    variant("meshinfo", default=True, description="The command that shows and checks layouts")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:", when="+mpi")
    depends_on("fmt@9:")
    depends_on("hwloc@2:", when="+hwloc+meshinfo")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3.3:")
    depends_on("xxhash@0.8:")
    depends_on("cli11@2.3:", when="+meshinfo", type="build")
    depends_on("expat@2.4:", when="+meshinfo")
    depends_on("libyaml@0.2:", when="+meshinfo")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.28:", when="+cuda")

    conflicts("%gcc@:11", msg="rankmesh needs C++20 as g++ 12 has it")

    def meson_args(self):
        def feature(name, variant):
            state = "enabled" if self.spec.satisfies("+" + variant) else "disabled"
            return "-D{0}={1}".format(name, state)

        args = [
            feature("mpi", "mpi"),
            feature("cuda", "cuda"),
            feature("nccl", "cuda"),
            feature("hwloc", "hwloc"),
            feature("tools", "meshinfo"),
            "-Dexamples=disabled",
            "-Dtests=disabled",
        ]
        if self.spec.satisfies("+mpi"):
            args.append("-Dmpi_name=compiler")
        if self.spec.satisfies("+cuda"):
            args.append("-Dwith_cuda=" + self.spec["cuda"].prefix)
        return args

    def setup_build_environment(self, env):
        # The wrapper of this MPI library, and of no other one in PATH.
        if self.spec.satisfies("+mpi"):
            env.set("CC", self.spec["mpi"].mpicc)
            env.set("CXX", self.spec["mpi"].mpicxx)
