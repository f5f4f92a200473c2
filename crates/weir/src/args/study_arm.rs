//! Flags of `weir study` about single arms: whose CPU is read, and what surrounds a start.

use clap::Args;

/// Each names an arm of the study, of its file or of `--arm`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Own servers")]
pub(crate) struct ArmFlags {
    /// The process whose CPU counts, with its children, for an arm that runs already [default: the one that listens
    /// there]
    #[arg(long, value_name = "NAME=PID", conflicts_with = "resume")]
    pub(crate) arm_pid: Vec<String>,
    /// The control group whose CPU counts instead, such as /system.slice/nginx.service
    #[arg(long, value_name = "NAME=PATH", conflicts_with = "resume")]
    pub(crate) arm_cgroup: Vec<String>,
    /// A variable of an arm's environment; the value may hold {port}; repeatable
    #[arg(long, value_name = "NAME=KEY=VALUE", conflicts_with = "resume")]
    pub(crate) arm_env: Vec<String>,
    /// The folder in which an arm is started
    #[arg(long, value_name = "NAME=DIR", conflicts_with = "resume")]
    pub(crate) arm_dir: Vec<String>,
    /// A command that runs to its end before each start of an arm
    #[arg(long, value_name = "NAME=COMMAND", conflicts_with = "resume")]
    pub(crate) arm_setup: Vec<String>,
    /// A command that runs after each end of an arm, also after a failure
    #[arg(long, value_name = "NAME=COMMAND", conflicts_with = "resume")]
    pub(crate) arm_cleanup: Vec<String>,
    /// Time limit of either command, 100ms to 10min [default: 30s]
    #[arg(long, value_name = "NAME=DURATION", conflicts_with = "resume")]
    pub(crate) arm_setup_timeout: Vec<String>,
    /// How an arm shows that it is ready: port (it accepts connections), line:TEXT (it writes a line that holds the
    /// text) or command:COMMAND (which ends with status 0) [default: port]
    #[arg(long, value_name = "NAME=HOW", conflicts_with = "resume")]
    pub(crate) arm_ready: Vec<String>,
    /// Time limit for that, 100ms to 10min [default: 10s]
    #[arg(long, value_name = "NAME=DURATION", conflicts_with = "resume")]
    pub(crate) arm_ready_timeout: Vec<String>,
}

impl ArmFlags {
    /// Every flag with what was given to it.
    pub(crate) fn all(&self) -> [(&'static str, &[String]); 9] {
        [
            ("--arm-pid", &self.arm_pid),
            ("--arm-cgroup", &self.arm_cgroup),
            ("--arm-env", &self.arm_env),
            ("--arm-dir", &self.arm_dir),
            ("--arm-setup", &self.arm_setup),
            ("--arm-cleanup", &self.arm_cleanup),
            ("--arm-setup-timeout", &self.arm_setup_timeout),
            ("--arm-ready", &self.arm_ready),
            ("--arm-ready-timeout", &self.arm_ready_timeout),
        ]
    }
}
