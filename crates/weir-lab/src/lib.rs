//! The laboratory: reads a study, runs it block by block, and has it judged.
//!
//! The modules in the order in which a study passes through them:
//!
//! - [`study_file`] reads a user's file or a [`builtin`] one, each with one protocol.
//! - [`validate`] checks it, and a [`mistake::Mistake`] says what is wrong with it.
//! - [`alternation`] decides which arms take turns, [`outline`] prints the plan, and [`time_left`] estimates how long
//!   the rest takes.
//! - [`run`] runs it through a [`launch::Launcher`] in the order of [`weir_judge::plan`] and stores every finished
//!   block.
//! - `weir-judge` judges it; [`exit`] and [`export`] hand the result on.
//! - [`stored`] judges the study in a run folder, and [`stored_folders`] finds the runs beside it.
//! - [`run_locks`] says whether a session works on a run folder, [`follow`] what it has stored so far, and
//!   [`store_words`] what is wrong with a store.
//!
//! Measured code never runs in this process; [`process`] starts it as child processes, which end when this process
//! does. Nothing here prints, exits or reads the environment.

pub mod alternation;
pub mod builtin;
pub mod exit;
pub mod export;
pub mod fake;
pub mod follow;
pub mod host_defaults;
pub mod io_models;
pub mod launch;
pub mod length;
pub mod limits;
pub mod mistake;
pub mod outline;
pub mod pilot;
pub mod process;
pub mod run;
pub mod run_folder;
pub mod run_locks;
pub mod storage;
pub mod store_words;
pub mod stored;
pub mod stored_folders;
pub mod stored_history;
pub mod study_file;
pub mod supervise;
pub mod time_left;
pub mod validate;

mod protocol;
mod toml_table;

pub use protocol::cell_id;
