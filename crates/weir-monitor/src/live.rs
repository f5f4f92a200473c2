//! The running monitor: plain lines or JSON for programs, a live view on a terminal.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use weir_report::Language;

use crate::{
    frame::{Frame, frame},
    lines, screen,
    snapshot::{Monitor, Snapshot},
    target::ports,
};

/// Longest delay until a stop is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Output of each moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The document's columns; also threads, if requested or if there is nothing else.
    Lines {
        /// Threads, hand-off, hop times and sessions at every moment.
        everything: bool,
        /// Language of the sentences.
        language: Language,
    },
    /// One JSON object.
    Json,
}

/// Interval and end of the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two snapshots.
    pub interval: Duration,
    /// Ends after the first frame that has rates.
    pub once: bool,
}

/// Writes a frame for each interval until the flag is set, or writes once.
///
/// # Errors
/// Errors of the output, including a reader that closed it.
pub fn write(
    monitor: &mut Monitor,
    output: &mut dyn Write,
    form: Form,
    pace: Pace,
    stop: &AtomicBool,
) -> io::Result<()> {
    if let Form::Lines { language, .. } = form {
        // A single frame is not monitoring.
        if !pace.once {
            output.write_all(lines::started(monitor.len(), language).as_bytes())?;
        }
        output.write_all(lines::targets(&monitor.targets(), ports, language).as_bytes())?;
        output.write_all(lines::header().as_bytes())?;
        output.flush()?;
    }
    let mut before: Option<Snapshot> = None;
    let mut due = Instant::now();
    while wait_until(due, stop) {
        let after = monitor.snapshot();
        let shown = frame(before.as_ref(), &after);
        if !pace.once || before.is_some() {
            output.write_all(written(&shown, form, pace.once)?.as_bytes())?;
            output.flush()?;
        }
        if pace.once && before.is_some() {
            return Ok(());
        }
        before = Some(after);
        due = next(due, pace.interval);
    }
    if let Form::Lines { language, .. } = form {
        output.write_all(format!("\n{}", lines::stopped(language)).as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

fn written(shown: &Frame, form: Form, once: bool) -> io::Result<String> {
    let Form::Lines { everything, language } = form else {
        return Ok(format!("{}\n", serde_json::to_string(shown).map_err(io::Error::other)?));
    };
    let mut text = lines::messages(shown, language);
    let has_counters = shown.nodes.iter().any(|node| node.received.total.is_some());
    if everything || once || !has_counters {
        text.push_str(&lines::threads(shown));
        text.push_str(&lines::orders(shown, language));
    }
    Ok(text)
}

/// The next moment on the grid of intervals; missed moments are skipped and never made up for.
fn next(due: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    let mut next = due + interval;
    if next < now {
        let missed = (now - next).as_nanos() / interval.as_nanos().max(1);
        next += interval * u32::try_from(missed + 1).unwrap_or(u32::MAX);
    }
    next
}

/// Waits; `false` when the flag was set meanwhile.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::park_timeout(left.min(TICK));
    }
}

/// Shows a live view until `q`, Ctrl-C, or the flag. The terminal is restored afterwards, also after a panic.
///
/// # Errors
/// Errors of the terminal.
pub fn show(
    monitor: &mut Monitor,
    interval: Duration,
    language: Language,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = watch(monitor, interval, language, stop, &mut terminal);
    let restored = ratatui::try_restore();
    shown.and(restored)
}

fn watch(
    monitor: &mut Monitor,
    interval: Duration,
    language: Language,
    stop: &AtomicBool,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<()> {
    let mut keys = screen::Keys::default();
    let mut before: Option<Snapshot> = None;
    let mut shown = Frame::default();
    let mut due = Instant::now();
    while !keys.quit && !stop.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            if !keys.paused {
                let after = monitor.snapshot();
                shown = frame(before.as_ref(), &after);
                before = Some(after);
            }
            due = next(due, interval);
        }
        terminal.draw(|canvas| screen::draw(canvas, &shown, &keys, language))?;
        let patience = due.saturating_duration_since(Instant::now()).min(TICK * 4);
        if event::poll(patience)? {
            press(&mut keys, &event::read()?);
        }
    }
    Ok(())
}

fn press(keys: &mut screen::Keys, event: &Event) {
    let Event::Key(key) = event else { return };
    if key.kind == KeyEventKind::Release {
        return;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => keys.quit = true,
        KeyCode::Char(character) => keys.press(character),
        KeyCode::Tab => keys.press('\t'),
        KeyCode::Esc => keys.quit = true,
        KeyCode::Down => keys.press('j'),
        KeyCode::Up => keys.press('k'),
        _ => {}
    }
}

/// A terminal that shows another module's lines. The terminal is restored on drop, also after a panic.
pub struct Page(ratatui::DefaultTerminal);

impl Page {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    /// Shows the lines, made for a terminal of the given columns and rows.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn draw(&mut self, lines: impl Fn(usize, usize) -> String) -> io::Result<()> {
        let draw = |canvas: &mut ratatui::Frame<'_>| {
            let area = canvas.area();
            let text = lines(area.width.into(), area.height.into());
            canvas.render_widget(ratatui::widgets::Paragraph::new(text), area);
        };
        self.0.draw(draw).map(drop)
    }

    /// Whether `q`, Escape or Ctrl-C was pressed since the last call.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn is_left(&self) -> io::Result<bool> {
        let mut keys = screen::Keys::default();
        while event::poll(Duration::ZERO)? {
            press(&mut keys, &event::read()?);
        }
        Ok(keys.quit)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // There is no terminal left to report an error on.
        let _ = ratatui::try_restore();
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;
    use crate::target::{Socket, Target};

    fn monitor() -> Monitor {
        let own = Target { pid: Some(std::process::id()), socket: Socket::Foreign, name: "OWN".to_owned() };
        Monitor::new(vec![own])
    }

    const FAST: Pace = Pace { interval: Duration::from_millis(20), once: true };

    #[test]
    fn once_is_one_frame_with_rates() {
        let mut text = Vec::new();
        let stop = AtomicBool::new(false);
        write(
            &mut monitor(),
            &mut text,
            Form::Lines { everything: false, language: Language::English },
            FAST,
            &stop,
        )
        .expect("memory");
        let text = String::from_utf8(text).expect("it is text");
        let head = format!("OWN: process {}\nTime ", std::process::id());
        assert!(text.starts_with(&head), "{text}");
        assert_eq!(text.matches("| OWN ").count(), 1, "{text}");
        assert!(text.contains("no socket") && text.contains("cswch/s"), "{text}");
        assert!(!text.contains("Stopped."), "{text}");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let mut text = Vec::new();
        write(&mut monitor(), &mut text, Form::Json, FAST, &AtomicBool::new(false)).expect("memory");
        let text = String::from_utf8(text).expect("it is text");
        assert_eq!(text.lines().count(), 1);
        let object: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(object["nodes"][0]["received"]["missing"], "no-socket");
        assert!(object["interval_s"].as_f64().is_some_and(|length| length >= 0.02), "{object}");
        assert!(object["nodes"][0]["threads"][0]["cpu_percent"].is_number(), "{object}");
    }

    #[test]
    fn a_stop_ends_with_its_line() {
        let mut text = Vec::new();
        let stop = AtomicBool::new(true);
        let pace = Pace { once: false, ..FAST };
        write(
            &mut monitor(),
            &mut text,
            Form::Lines { everything: false, language: Language::English },
            pace,
            &stop,
        )
        .expect("memory");
        assert!(String::from_utf8(text).expect("it is text").ends_with("\nStopped.\n"));
    }

    #[test]
    fn moments_that_passed_are_not_made_up_for() {
        let interval = Duration::from_millis(100);
        let long_ago = Instant::now() - Duration::from_secs(5);
        let due = next(long_ago, interval);
        let left = due.saturating_duration_since(Instant::now());
        assert!(left <= interval, "{left:?}");
        assert_eq!((due - long_ago).as_millis() % 100, 0, "it stays on the grid");
    }

    #[test]
    fn ctrl_c_quits_like_q() {
        let mut keys = screen::Keys::default();
        press(&mut keys, &Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!keys.quit);
        press(&mut keys, &Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(keys.quit);
    }
}
