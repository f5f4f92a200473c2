//! fio-plot on reports and logs of `weir storage run`: every kind of chart that it can make of one set of
//! measurements.

#![expect(clippy::print_stdout, reason = "a command line tool talks to its user")]

use std::{fs, path::Path, process::Command};

use super::run_to_end;

/// A pattern that only reads, and a half-and-half mix.
const PATTERNS: [&str; 2] = ["randread", "randrw"];
const DEPTHS: [&str; 2] = ["1", "4"];
/// Bar charts by depths and by jobs, a 3D landscape, a histogram, and the logs.
const CHARTS: [&[&str]; 5] = [
    &["-l"],
    &["-N", "-d", "1"],
    &["-L", "-t", "iops"],
    &["-H", "-d", "1", "-n", "1"],
    &["-g", "-t", "iops", "lat"],
];

/// Takes short measurements and plots them.
pub fn draw(weir: &Path, fio_plot: &Path, folder: &Path) -> Result<(), String> {
    let failed =
        |what: &str, error: std::io::Error| format!("cannot {what} in {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(|error| failed("make a folder", error))?;
    for pattern in PATTERNS {
        let reports = folder.join(pattern);
        fs::create_dir_all(&reports).map_err(|error| failed("make a folder", error))?;
        for depth in DEPTHS {
            let name = format!("{pattern}-iodepth-{depth}-numjobs-1");
            let mut run = Command::new(weir);
            run.current_dir(folder).args([
                "storage",
                "run",
                "--size",
                "4m",
                "--direct=off",
                "--engine",
                "threads",
            ]);
            run.args([
                "--rw",
                pattern,
                "--depth",
                depth,
                "--runtime",
                "1200ms",
                "--interval",
                "300ms",
                "--json",
            ]);
            run.args(["--log-average", "100ms", "--log-prefix"]).arg(reports.join(&name));
            let output = run.output().map_err(|error| failed("run weir storage run", error))?;
            if !output.status.success() {
                return Err(format!("{run:?}: {}", String::from_utf8_lossy(&output.stderr)));
            }
            let report = reports.join(format!("{name}.json"));
            fs::write(&report, output.stdout).map_err(|error| failed("write a report", error))?;
        }
        for chart in CHARTS {
            let picture = folder.join(format!("{pattern}{}.png", chart[0]));
            let mut plot = Command::new(fio_plot);
            plot.arg("-i").arg(&reports).args(["-T", "weir storage run", "-r", pattern]).args(chart);
            run_to_end(plot.args(["-f", "read", "-o"]).arg(&picture))?;
            let bytes = fs::read(&picture).map_err(|error| failed("read a picture", error))?;
            if !bytes.starts_with(b"\x89PNG") {
                return Err(format!("{plot:?} made no picture"));
            }
        }
    }
    println!("ok: fio-plot drew {} charts of our reports and logs", PATTERNS.len() * CHARTS.len());
    Ok(())
}
