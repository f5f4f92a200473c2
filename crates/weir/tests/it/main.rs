//! The program as people and scripts use it: real processes, their output, their exit codes and what they leave.
//!
//! No test needs root. Tests that fill a disk, stop one, make a faulty one or run as another user are skipped without
//! it, and browser tests are skipped without a browser. `WEIR_SLOW_TESTS=1` adds the long forms.

#![expect(clippy::print_stdout, reason = "tests say their seed and what they skip")]

mod as_on_kernel;
mod browser;
mod browser_pages;
mod browser_pictures;
mod chaos;
mod check_steps;
#[path = "../../../../xtask/src/chromium.rs"]
mod chromium;
mod compare;
mod compare_servers;
mod counts;
mod dashboard;
mod devtools;
mod export_schema;
mod filled_disk;
mod harness;
mod history;
mod interrupt;
mod killed;
mod load_hosts;
mod load_http;
mod load_orders;
mod merge_request;
mod metrics;
mod mistakes;
mod observe;
mod observe_advice;
mod observe_ends;
mod observe_runtimes;
mod observe_selection;
mod observe_tools;
mod order_client;
mod order_cycles;
mod order_day;
mod order_drop_copy;
mod order_frozen_disk;
mod order_full_disk;
mod order_journal;
mod order_journal_files;
mod order_kill;
mod order_new_session;
mod order_notices;
mod order_reload;
mod orders_limits;
mod packaging;
mod pull_request;
mod refused;
mod serve;
mod serve_http;
mod still_running;
mod stop;
mod storage;
mod storage_capture;
mod storage_crash;
mod storage_failures;
mod storage_outputs;
mod storage_simulate;
mod study_baseline;
mod study_defects;
mod study_diff;
mod study_earlier;
mod study_elsewhere;
mod study_evidence;
mod study_files;
mod study_flags;
mod study_gateway;
mod study_goals;
mod study_hosts;
mod study_own;
mod study_polling;
mod study_pool;
mod study_repeat;
mod study_ssh;
mod study_storage;
mod text;
mod top;
mod unix;
#[path = "../../../weir-report/tests/it/weight.rs"]
mod weight;
