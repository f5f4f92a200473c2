//! Where the servers of a study run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host of servers that is another than the generator's, as the command line named it. A study that goes on is run
/// there again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerHost {
    /// `[user@]HOST`, as `ssh` takes it; absent where another command leads there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// That command; absent where it is `ssh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsh: Option<String>,
    /// The address of the host at which its servers listen.
    pub address: String,
    /// How long a question to the host took that asks for nothing, in nanoseconds. It is in no figure.
    pub control_delay_ns: u64,
}
