//! The result of a running study so far, sent to browsers as it is stored. While a browser watches, one task looks once
//! a second, reads a store only when it has changed, and then only its new blocks. A browser that does not read its
//! events is dropped, and gets the current state when it comes back. No browser is refused: if all places are taken,
//! the one that has watched longest makes room and receives an event about it.

use std::{
    convert::Infallible,
    net::IpAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame};
use tokio::{
    sync::{Notify, mpsc},
    task::spawn_blocking,
    time::sleep,
};
use weir_lab::{follow::Follower, run_locks::Held};
use weir_proto::client::counted_as;
use weir_report::Language;

use crate::{
    folder::{Found, Listing, Stamp, stamp},
    running_study::Scene,
    study_cache::Problem,
};

/// Most browsers that watch at a time; a further one replaces the oldest at the address that has most.
pub const WATCHERS_MAX: usize = 16;

/// Most of them at one address; a further one replaces its oldest.
pub const WATCHERS_ADDRESS_MAX: usize = 8;

/// Messages that may wait for a browser.
const BACKLOG_MAX: usize = 4;
/// Time between two looks at a study that runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks between two searches for a study, where none runs.
const SEARCH_EVERY: u32 = 5;
/// Looks that search without a pause, after a study was started here.
const EXPECTED_LOOKS: u32 = 60;
/// Looks between two heartbeats, by which a browser that has gone silently is noticed.
const BEAT_EVERY: u32 = 15;
/// A heartbeat: an event, because scripts do not receive comments.
const BEAT: &[u8] = b"event: beat\ndata: .\n\n";
/// The last event for a browser whose place another one takes.
const REPLACED: &[u8] = b"event: replaced\ndata: .\n\n";

/// Looks at the study that runs, and remembers what it read.
#[derive(Default)]
struct Eye {
    scene: Scene,
    study: Option<Found>,
    /// The stamp of the store when it was read; absent while a passing reason kept it from being read.
    seen: Option<Stamp>,
    follower: Follower,
    looks: u32,
    /// Looks for a study that was started here and has not begun yet.
    expected: u32,
    /// Goes up with each scene.
    version: u64,
}

impl Eye {
    /// Looks again. Blocks on files.
    fn look(&mut self, folder: &Path) {
        let scene = self.next(folder);
        if scene != self.scene {
            self.scene = scene;
            self.version += 1;
        }
    }

    fn next(&mut self, folder: &Path) -> Scene {
        if let Some(study) = &self.study {
            if !Held::now().holds(&study.path) {
                let name = study.name.clone();
                self.study = None;
                return Scene::Ended { name };
            }
            let now = stamp(&study.path);
            let is_new = now.is_some() && now != self.seen;
            return if is_new { self.read(now) } else { self.scene.clone() };
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks % SEARCH_EVERY != 1 && self.expected == 0 {
            return self.scene.clone();
        }
        self.expected = self.expected.saturating_sub(1);
        // A folder that cannot be read now may be readable later.
        let studies = Listing::of(folder).unwrap_or_default().studies;
        let Some(study) = studies.into_iter().find(|study| study.is_running) else {
            return self.scene.clone();
        };
        let found = study.stamp;
        self.expected = 0;
        (self.study, self.seen, self.follower) = (Some(study), None, Follower::default());
        self.read(Some(found))
    }

    /// Reads the store, which had this stamp before.
    fn read(&mut self, stamp: Option<Stamp>) -> Scene {
        let Some(Found { name, path, .. }) = &self.study else { return Scene::Nothing };
        let (scene, is_passing) = match self.follower.look(path) {
            Ok(followed) => (Scene::Running { name: name.clone(), followed: Box::new(followed) }, false),
            Err(error) => {
                let problem = Problem::of(&error);
                (Scene::Unreadable { name: name.clone(), problem }, problem.is_passing())
            }
        };
        // After a passing error it is read again although nothing was written.
        self.seen = stamp.filter(|_| !is_passing);
        scene
    }
}

/// A browser that watches.
struct Watcher {
    /// The address it counts for.
    from: IpAddr,
    language: Language,
    messages: mpsc::Sender<Bytes>,
    /// The version that it received last.
    version_sent: Option<u64>,
}

/// The running study, and the browsers that watch it.
pub(crate) struct Live {
    folder: PathBuf,
    eye: Mutex<Eye>,
    /// The first has watched longest.
    watchers: Mutex<Vec<Watcher>>,
    came: Notify,
}

impl Live {
    pub(crate) fn over(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            eye: Mutex::default(),
            watchers: Mutex::default(),
            came: Notify::new(),
        }
    }

    /// The running study. Blocks on files.
    pub(crate) fn scene(&self) -> Scene {
        let mut eye = held(&self.eye);
        if eye.study.is_none() {
            // A new reader does not wait for the next search.
            eye.looks = 0;
        }
        eye.look(&self.folder);
        eye.scene.clone()
    }

    /// Announces a study that begins in a moment, so that an ended one is not shown as this one. Waits for the look in
    /// progress.
    pub(crate) fn expect(&self) {
        let mut eye = held(&self.eye);
        eye.expected = EXPECTED_LOOKS;
        if matches!(eye.scene, Scene::Ended { .. }) {
            eye.scene = Scene::Nothing;
            eye.version += 1;
        }
    }

    /// Browsers that watch.
    pub(crate) fn watching(&self) -> usize {
        held(&self.watchers).len()
    }

    /// Lets one more browser watch, in place of another where there is none left.
    pub(crate) fn watch(&self, language: Language, address: IpAddr) -> Messages {
        let from = counted_as(address);
        let mut watchers = held(&self.watchers);
        watchers.retain(|watcher| !watcher.messages.is_closed());
        if let Some(index) = makes_room(&watchers, from) {
            // A browser that does not read gets no event, and comes back when it notices.
            let _ = watchers.remove(index).messages.try_send(Bytes::from_static(REPLACED));
        }
        let (messages, receiver) = mpsc::channel(BACKLOG_MAX);
        watchers.push(Watcher { from, language, messages, version_sent: None });
        self.came.notify_one();
        Messages(receiver)
    }

    /// Looks as long as a browser watches; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut looks = 0_u32;
        loop {
            if self.watching() == 0 {
                self.came.notified().await;
            }
            let own = Arc::clone(&self);
            // A store that breaks its reader is shown as one that cannot be read, on its report's page.
            let seen = spawn_blocking(move || {
                let mut eye = held(&own.eye);
                eye.look(&own.folder);
                (eye.scene.clone(), eye.version)
            });
            looks = looks.wrapping_add(1);
            if let Ok((scene, version)) = seen.await {
                self.tell(&scene, version, looks.is_multiple_of(BEAT_EVERY));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Sends the scene to browsers that have not received it; the others get a heartbeat where one is due.
    fn tell(&self, scene: &Scene, version: u64, is_beat: bool) {
        let tell = |watcher: &mut Watcher| {
            let message = match watcher.version_sent == Some(version) {
                true if is_beat => Bytes::from_static(BEAT),
                true => return !watcher.messages.is_closed(),
                false => message(&scene.drawn(watcher.language).into_string()),
            };
            watcher.version_sent = Some(version);
            watcher.messages.try_send(message).is_ok()
        };
        held(&self.watchers).retain_mut(tell);
    }
}

/// The browser that makes room for one more of this address, if one must.
fn makes_room(watchers: &[Watcher], from: IpAddr) -> Option<usize> {
    let at = |address: IpAddr| watchers.iter().filter(|watcher| watcher.from == address).count();
    let crowded = if at(from) >= WATCHERS_ADDRESS_MAX {
        from
    } else if watchers.len() >= WATCHERS_MAX {
        watchers.iter().map(|watcher| watcher.from).max_by_key(|address| at(*address))?
    } else {
        return None;
    };
    watchers.iter().position(|watcher| watcher.from == crowded)
}

/// A text as one server-sent event.
fn message(text: &str) -> Bytes {
    let lines: String = text.lines().map(|line| format!("data: {line}\n")).collect();
    Bytes::from(lines + "\n")
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Server-sent events for one browser; they end when it is dropped.
pub(crate) struct Messages(mpsc::Receiver<Bytes>);

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_several_lines_is_one_event() {
        assert_eq!(message("<p>a\nb</p>"), "data: <p>a\ndata: b</p>\n\n");
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// All events that a browser has not read yet, and whether that is all.
    fn received(messages: &mut Messages) -> (String, bool) {
        let mut text = String::new();
        loop {
            match messages.0.try_recv() {
                Ok(message) => text.push_str(&String::from_utf8_lossy(&message)),
                Err(mpsc::error::TryRecvError::Empty) => return (text, false),
                Err(mpsc::error::TryRecvError::Disconnected) => return (text, true),
            }
        }
    }

    #[test]
    fn one_more_of_an_address_takes_the_place_of_its_oldest_and_of_nobody_else() {
        let live = Live::over(Path::new("nowhere"));
        let mut other = live.watch(Language::English, at(2));
        let watch = || live.watch(Language::English, at(1));
        let mut own: Vec<Messages> = (0..=WATCHERS_ADDRESS_MAX).map(|_| watch()).collect();
        assert_eq!(live.watching(), WATCHERS_ADDRESS_MAX + 1);
        let (last_words, is_over) = received(&mut own[0]);
        assert!(is_over && last_words == "event: replaced\ndata: .\n\n", "{last_words}");
        assert!(own[1..].iter_mut().chain([&mut other]).all(|one| !received(one).1));
        drop(own.pop());
        let mut further = watch();
        assert!(own[1..].iter_mut().chain([&mut further]).all(|one| !received(one).1), "there was room");
    }

    #[test]
    fn where_all_places_are_taken_the_address_with_most_makes_room() {
        let live = Live::over(Path::new("nowhere"));
        let mut few = live.watch(Language::English, at(3));
        let watch = |last| live.watch(Language::English, at(last));
        let mut many: Vec<Messages> = (0..WATCHERS_ADDRESS_MAX).map(|_| watch(1)).collect();
        let mut rest: Vec<Messages> = (1..WATCHERS_ADDRESS_MAX).map(|_| watch(2)).collect();
        assert_eq!(live.watching(), WATCHERS_MAX);
        let mut further = watch(4);
        assert_eq!(live.watching(), WATCHERS_MAX, "never one more");
        assert!(received(&mut many[0]).1, "the oldest of those that are most");
        let others = many[1..].iter_mut().chain(&mut rest).chain([&mut few, &mut further]);
        assert!(others.into_iter().all(|one| !received(one).1));
    }

    #[test]
    fn a_watcher_that_takes_nothing_is_let_go_when_its_backlog_is_full() {
        let live = Live::over(Path::new("nowhere"));
        let slow = live.watch(Language::Korean, at(1));
        for version in 0..BACKLOG_MAX as u64 {
            live.tell(&Scene::Nothing, version, false);
            live.tell(&Scene::Nothing, version, false);
            assert_eq!(live.watching(), 1, "nothing is sent twice");
        }
        live.tell(&Scene::Nothing, BACKLOG_MAX as u64, false);
        assert_eq!(live.watching(), 0);
        drop(slow);
    }
}
