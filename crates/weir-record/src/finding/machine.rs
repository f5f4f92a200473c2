//! What a machine has and lacks, and what `weir doctor` finds: a code for each finding, by group.

/// Gives its groups, after those that it is given, to the macro that is named first.
macro_rules! findings_of_machine {
    ([$next:ident $($later:ident)*] $($groups:tt)*) => { $next! { [$($later)*] $($groups)*
    /// What a driver has and lacks.
    OfDrivers {
        /// What the kernel granted a driver.
        DriverGranted = "driver-granted" {
            /// Stable names (`multishot-receive`).
            features: Vec<String>,
        }
        /// The kernel does not know io_uring, or a filter says so in its place.
        NoIoUring = "no-io-uring"
        /// The administrator switched io_uring off.
        IoUringDisabled = "io-uring-disabled" {
            /// `kernel.io_uring_disabled`.
            level: u8,
        }
        /// A sandbox forbids io_uring.
        IoUringForbidden = "io-uring-forbidden"
        /// There is no locked memory left for a ring.
        IoUringMemory = "io-uring-memory"
        /// The kernel's io_uring is older than the driver needs, or is to be used as if it were.
        IoUringTooOld = "io-uring-too-old"
        /// An arm is to run as on a kernel that is newer than this one.
        KernelOlder = "kernel-older" {
            /// The kernel it is to stand for.
            asked: KernelVersion,
            /// This kernel.
            running: KernelVersion,
        }
        /// The kernel has no native AIO.
        NoNativeAio = "no-native-aio"
    }
    /// What keeps a program from running.
    OfPrograms {
        /// A program is not on the search path.
        NotOnPath = "not-on-path" {
            /// Its name.
            program: String,
        }
        /// A file is not there, or is no program.
        NoProgram = "no-program" {
            /// Its path.
            program: String,
        }
        /// A server never came up.
        NeverServed = "never-served" {
            /// Trials, in each of which it failed.
            trials: u32,
            /// Its last message, in its own words.
            said: String,
        }
        /// A program says that it cannot run in this environment.
        CannotRunHere = "cannot-run-here" {
            /// In its own words.
            said: String,
        }
        /// A congestion control that a cell asks for cannot be used here.
        NoCongestionControl = "no-congestion-control" {
            /// What was asked for.
            name: String,
            /// What may be used.
            available: Vec<String>,
        }
        /// A disk cannot be used, or says nothing about a device.
        DiskUnusable = "disk-unusable" {
            /// As the one who looked at it said.
            said: String,
        }
        /// What the kernel or a program said, in its own words.
        Said = "said" {
            /// The words.
            text: String,
        }
    }
    /// What told it.
    OfProbes {
        /// Found out with a byte through a socket pair.
        TriedOnSockets = "tried-on-sockets"
        /// Found out with a block of a file.
        TriedOnFile = "tried-on-file"
        /// Found out with two buffers, written to a file in memory with one call.
        TriedGathering = "tried-gathering"
        /// The block came back.
        BlockRead = "block-read"
        /// Two buffers were written with one call.
        TwoBuffers = "two-buffers"
        /// Read from files of the kernel.
        ReadFrom = "read-from" {
            /// Their paths.
            paths: Vec<String>,
        }
    }
    /// What fixes it.
    OfRemedies {
        /// A command that fixes it.
        RunCommand = "run-command" {
            /// The command.
            command: String,
        }
        /// A kernel with io_uring fixes it, or a filter that lets it through.
        AllowIoUring = "allow-io-uring"
        /// A container without its filter fixes it.
        OpenSandbox = "open-sandbox"
        /// Installing the program fixes it, or naming it by its path.
        InstallProgram = "install-program"
    }
    /// CPUs of server and generator.
    OfCpus {
        /// How many cores server and generator have.
        CoresFound = "cores-found" {
            /// CPUs that this process may use.
            allowed: u32,
            /// CPUs that are online.
            online: u32,
            /// Physical cores among those it may use.
            cores: u32,
            /// What the two share.
            shared: SharedPart,
        }
        /// Where server and generator are pinned.
        PinnedTo = "pinned-to" {
            /// CPUs of the server.
            server: Vec<u32>,
            /// CPUs of the generator.
            load: Vec<u32>,
            /// Those of them that the kernel refuses.
            refused: Vec<u32>,
            /// What the two share.
            shared: SharedPart,
        }
    }
    /// What decides how fast a CPU is.
    OfSpeed {
        /// The control group has no CPU quota.
        NoCpuQuota = "no-cpu-quota"
        /// It has one.
        CpuQuota = "cpu-quota" {
            /// CPUs' worth of time.
            cpus: f64,
        }
        /// No frequency governor can be seen.
        NoGovernor = "no-governor"
        /// The frequency governor.
        Governor = "governor" {
            /// Its name.
            name: String,
            /// The frequency follows the load.
            follows_load: bool,
        }
        /// The clock source cannot be read.
        NoClockSource = "no-clock-source"
        /// The clock source.
        ClockSource = "clock-source" {
            /// Its name.
            name: String,
            /// The time is read without a system call.
            is_fast: bool,
        }
    }
    /// How many connections there can be.
    OfConnections {
        /// How many connections a process can have open.
        DescriptorsFound = "descriptors-found" {
            /// Connections; absent without a limit.
            connections: Option<u64>,
            /// Descriptors that the hard limit allows; absent without one.
            allowed: Option<u64>,
            /// The soft limit, where it is lower and is raised.
            raised_from: Option<u64>,
            /// Descriptors in use.
            used: u64,
        }
        /// How many local ports there are.
        LocalPorts = "local-ports" {
            /// Ports.
            ports: u64,
            /// Connections to one server that they allow.
            connections: u64,
        }
        /// `net.core.somaxconn` cannot be read.
        NoAcceptQueue = "no-accept-queue"
        /// How many connections a listener queues.
        AcceptQueue = "accept-queue" {
            /// At most.
            connections_max: u64,
        }
    }
    /// Locked memory.
    OfMemory {
        /// Locked memory is not limited.
        LockedMemoryFree = "locked-memory-free" {
            /// Because of CAP_IPC_LOCK.
            by_capability: bool,
        }
        /// Locked memory is limited.
        LockedMemory = "locked-memory" {
            /// In bytes.
            bytes: u64,
        }
        /// The limit of locked memory cannot be read.
        NoLockedMemory = "no-locked-memory"
    }
    /// How quiet the machine is.
    OfQuiet {
        /// What the hypervisor took.
        Stolen = "stolen" {
            /// Share of CPU time since the machine started.
            since_boot: f64,
            /// Share in a window that ends now.
            now: f64,
            /// Its length.
            window_ns: u64,
        }
        /// What other processes used in a window that ends now.
        OthersUsed = "others-used" {
            /// CPUs.
            cpus: f64,
            /// Its length.
            window_ns: u64,
        }
        /// A cross-core reading of now.
        CrossCoreNow = "cross-core-now" {
            /// One CPU.
            cpu_a: u32,
            /// The other.
            cpu_b: u32,
            /// There and back.
            round_trip_ns: f64,
        }
        /// There is one CPU only.
        OneCpu = "one-cpu"
    }
    /// Rungs of evidence.
    OfRungs {
        /// Why a rung of evidence is not available.
        RungBarred = "rung-barred" {
            /// The obstacle.
            obstacle: Obstacle,
        }
        /// What a rung of evidence gives.
        RungGives = "rung-gives" {
            /// The rung.
            rung: Rung,
        }
    }
    } };
}
