//! How long a page takes: `cargo bench -p weir-dashboard --bench pages`.
//!
//! Studies of the fake machine, as large as real ones. A cold page is requested as soon as a dashboard listens, and the
//! dashboard then reads its stores; a warm page is the second request. Each dashboard is a new one, and times are of
//! the whole request.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use client::Running;
use results::{folder, run_study};

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/client.rs"]
mod client;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/results.rs"]
mod results;

const STUDIES: usize = 100;

const RUNS: usize = 9;

fn main() {
    let list = folder("bench-list");
    let first = run_study(&list, ("quick-000", "quick"), "", u32::MAX);
    for number in 1..STUDIES {
        copy(&first, &list.join(format!("quick-{number:03}")));
    }
    measure(&list, &format!("list of {STUDIES} studies"), "/");
    measure(&list, "study quick", "/study/quick-000");
    let map = folder("bench-map");
    let study = run_study(&map, ("map", "tps"), "standard", u32::MAX);
    let bytes = fs::metadata(study.join(weir_store::FILE_NAME)).map_or(0, |store| store.len());
    measure(&map, &format!("map ({:.1} MB stored)", bytes as f64 / 1e6), "/study/map");
    measure(&map, "chart of the map", "/thread-chart");
    for made in [list, map] {
        fs::remove_dir_all(made).expect("what was made can be removed");
    }
}

fn measure(results: &Path, what: &str, path: &str) {
    let (mut cold, mut warm, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let mut dashboard = Running::over(results);
        let mut page = || {
            let began = Instant::now();
            let answer = dashboard.get(path);
            assert_eq!(answer.status, 200, "{path}");
            bytes = answer.body.len();
            began.elapsed()
        };
        cold.push(page());
        warm.push(page());
        dashboard.end();
    }
    let [cold, warm] = [cold, warm].map(median_ms);
    println!(
        "{what:<28} cold {cold:>8.1} ms   warm {warm:>8.1} ms   {:>8.1} kB   median of {RUNS}",
        bytes as f64 / 1e3
    );
}

/// The same study under another name.
fn copy(study: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    fs::copy(study.join(weir_store::FILE_NAME), to.join(weir_store::FILE_NAME))
        .expect("a store can be copied");
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
