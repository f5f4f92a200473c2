//! The laboratory: says what a study asks, runs it block by block, and has it judged.
//!
//! In the order a study passes through: [`study_file`] reads what is asked, of a user's file or of a [`builtin`] one,
//! each with one protocol; [`validate`] says what may be asked and a [`mistake::Mistake`] what is wrong with it,
//! [`alternation`] which arms take turns and [`outline`] what that comes to, and [`time_left`] how much longer it
//! takes; [`run`] runs it through a [`launch::Launcher`] in the order of [`weir_judge::plan`] and stores every
//! finished block, `weir-judge` judges it, [`exit`] and [`export`] hand the result on. [`stored`] judges what a run
//! folder holds and [`stored_folders`] what lies beside it, [`run_locks`] says whether a session works on it,
//! [`follow`] what it has stored so far, and [`store_words`] what is wrong with a store.
//!
//! Measured code never runs in this process; [`process`] starts it as child processes that cannot outlive it. Nothing
//! here prints, exits or reads the environment.

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
