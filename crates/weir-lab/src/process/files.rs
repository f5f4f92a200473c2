//! Files of a trial: the content that HTTP servers serve, and a folder for what they write.
//!
//! Weir's own server and generator generate a content from its name. A foreign server receives it as a file, written
//! once for each study below the run folder, so that readers of the results can see what was served.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use weir_proto::content::Content;
use weir_record::{
    http::{MixedRequest, RequestMix},
    spec::{CellSpec, Ready, StorageCell},
};

use crate::{
    launch::{LaunchError, TrialRequest},
    protocol::{
        self,
        http::{REQUESTS, file_name},
        start::ServerStart,
    },
    storage,
};

/// Folder of all contents, in the run folder.
pub(crate) const CONTENTS: &str = "content";

/// Folder of a trial's output, in the run folder; removed with the trial.
pub(crate) const SCRATCH: &str = "scratch";

/// The run folder and the files written into it.
#[derive(Debug, Default)]
pub(crate) struct Files {
    folder: Option<PathBuf>,
    written: BTreeSet<String>,
    /// The requests of the study's generators, if they are a mix.
    requests: Vec<MixedRequest>,
}

/// The values of the placeholders of a command in one trial.
#[derive(Debug, Default)]
pub(crate) struct TrialFiles {
    words: Vec<(&'static str, String)>,
    scratch: Option<PathBuf>,
}

impl Files {
    /// Files of a study with these requests.
    pub(crate) fn asking(requests: &[MixedRequest]) -> Self {
        Self { requests: requests.to_vec(), ..Self::default() }
    }

    pub(crate) fn below(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Creates only the files that the words of servers and neighbours name.
    pub(crate) fn prepare(
        &mut self,
        request: &TrialRequest<'_>,
        servers: &[ServerStart],
    ) -> Result<TrialFiles, LaunchError> {
        let asked = request.neighbours.iter().filter(|it| request.cell.neighbours.contains(&it.name));
        let beside = asked.flat_map(|neighbour| &neighbour.argv);
        let start = &request.arm.start;
        let around =
            start.environment.values().chain(&start.folder).chain(&start.setup).chain(&start.cleanup);
        let ready = match &start.ready {
            Ready::Command(command) => command.as_slice(),
            Ready::Line(text) => std::slice::from_ref(text),
            Ready::Port => &[],
        };
        let words = servers.iter().flat_map(|server| &server.words).chain(beside).chain(around).chain(ready);
        let words: Vec<&String> = words.collect();
        let names = |place: &str| words.iter().any(|word| word.contains(place));
        let mut files = TrialFiles::default();
        if names("{content") {
            let protocol = protocol::of(request.cell);
            let content = protocol.content(request.cell).ok_or_else(|| {
                let (arm, name) = (&request.arm.name, protocol.name());
                LaunchError::Usage(format!(
                    "arm {arm}: a study of {name} has no content to put into a command"
                ))
            })?;
            files.words = self.content(content).map_err(unable)?;
        }
        if names("{scratch}") {
            // Servers of a round are up together and must not share a folder.
            let own = Path::new(SCRATCH).join(request.position.to_string());
            self.clear(&own).map_err(unable)?;
            let scratch = self.make(&own).map_err(unable)?;
            files.words.push(("{scratch}", scratch.display().to_string()));
            files.scratch = Some(scratch);
        }
        files.words.extend(self.requests_of(request.cell)?);
        Ok(files)
    }

    /// Creates only the files that the generator of a cell reads.
    pub(crate) fn of_generator(&mut self, cell: &CellSpec) -> Result<TrialFiles, LaunchError> {
        Ok(TrialFiles { words: self.requests_of(cell)?.into_iter().collect(), scratch: None })
    }

    /// The file of a mix and its placeholder, if the cell has a mix. An agent without a generator never receives the
    /// requests.
    fn requests_of(&mut self, cell: &CellSpec) -> Result<Option<(&'static str, String)>, LaunchError> {
        if self.requests.is_empty() || !cell.http.as_ref().is_some_and(|http| http.mix) {
            return Ok(None);
        }
        Ok(Some((REQUESTS, self.mix().map_err(unable)?.display().to_string())))
    }

    /// Writes the requests of a mix to a file for the generator. Their fields and bodies may be secrets.
    fn mix(&mut self) -> io::Result<PathBuf> {
        let path = self.make(Path::new(CONTENTS))?.join("requests.toml");
        if self.written.insert(REQUESTS.to_owned()) {
            let text = toml::to_string(&RequestMix { request: self.requests.clone() });
            write_privately(&path, &text.map_err(io::Error::other)?)?;
        }
        Ok(path)
    }

    /// The data of a cell of storage.
    pub(crate) fn data(&self, cell: &StorageCell) -> Result<PathBuf, LaunchError> {
        let run = self.folder.as_ref().ok_or_else(|| {
            LaunchError::Environment(
                "the launcher was given no run folder to find the data beside".to_owned(),
            )
        })?;
        let file = storage::data_file(run, cell);
        file.canonicalize().map_err(|error| LaunchError::Environment(format!("{}: {error}", file.display())))
    }

    fn content(&mut self, content: Content) -> io::Result<Vec<(&'static str, String)>> {
        let name = content.to_string();
        let folder = self.make(&Path::new(CONTENTS).join(&name))?;
        let path = folder.join(file_name(content));
        if self.written.insert(name) {
            fs::write(&path, content.bytes())?;
        }
        Ok(vec![
            ("{content}", path.display().to_string()),
            ("{content_name}", content.to_string()),
            ("{content_type}", content.media_type().to_owned()),
            ("{content_dir}", folder.display().to_string()),
        ])
    }

    /// Removes a folder below the run folder that a session left behind when it was killed.
    fn clear(&self, name: &Path) -> io::Result<()> {
        let Some(run) = &self.folder else { return Ok(()) };
        match fs::remove_dir_all(run.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Creates a folder below the run folder and returns its absolute path, because a server may change its own
    /// folder.
    fn make(&self, name: &Path) -> io::Result<PathBuf> {
        let run =
            self.folder.as_ref().ok_or_else(|| io::Error::other("the launcher was given no run folder"))?;
        let folder = run.join(name);
        fs::create_dir_all(&folder)?;
        folder.canonicalize()
    }
}

impl TrialFiles {
    /// The word with all placeholders of files replaced.
    pub(crate) fn substituted(&self, word: &str) -> String {
        self.words.iter().fold(word.to_owned(), |word, (place, path)| word.replace(place, path))
    }
}

impl Drop for TrialFiles {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            // A folder that cannot be removed stays in the run folder, where the user sees it.
            let _ = fs::remove_dir_all(scratch);
            // The last server of a round also removes the common folder; before that it is not empty.
            let _ = scratch.parent().map(fs::remove_dir);
        }
    }
}

/// Writes a file that only its owner may read. An earlier file is removed, whatever its permissions.
fn write_privately(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn unable(error: io::Error) -> LaunchError {
    LaunchError::Environment(format!("cannot write what the servers answer with: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, sync::atomic::AtomicBool};

    use weir_judge::sample;
    use weir_record::spec::{HttpCell, StudySpec};

    use super::*;
    use crate::protocol::start::Program;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weir-lab-{name}-{}", std::process::id()))
    }

    fn asking(content: Option<&str>) -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring"], 4, 1);
        let http = content.map(|name| HttpCell { content: name.to_owned(), ..HttpCell::default() });
        spec.cells[0] = CellSpec { http, ..spec.cells[0].clone() };
        spec
    }

    fn prepare(files: &mut Files, spec: &StudySpec, words: &[&str]) -> Result<TrialFiles, LaunchError> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let server = ServerStart { name: "server", program: Program::Foreign, words, build: None };
        let request = TrialRequest {
            arm: &spec.arms[0],
            cell: &spec.cells[0],
            server_cpus: &[],
            load_cpus: &[],
            neighbours: &[],
            seed: 1,
            block: 0,
            position: 0,
            interrupt: &AtomicBool::new(false),
        };
        files.prepare(&request, &[server])
    }

    #[test]
    fn a_command_gets_the_file_its_type_and_its_folder() {
        let run = folder("content");
        let mut files = Files::default().below(run.clone());
        for (content, name, media_type) in [
            ("html", "index.html", "text/html; charset=utf-8"),
            ("image", "image.jpg", "image/jpeg"),
            ("65", "65.bin", "application/octet-stream"),
        ] {
            let trial =
                prepare(&mut files, &asking(Some(content)), &["{port}", "{content}"]).expect("it can");
            let path = PathBuf::from(trial.substituted("{content}"));
            assert!(path.is_absolute() && path.ends_with(format!("content/{content}/{name}")), "{path:?}");
            let bytes = content.parse::<Content>().expect("a content").bytes();
            assert!(fs::read(&path).expect("it was written") == bytes, "{content}");
            let whole = trial.substituted("a {content_type} in {content_dir}/x");
            assert_eq!(whole, format!("a {media_type} in {}/x", path.parent().expect("a folder").display()));
        }
        fs::remove_dir_all(&run).expect("it can be removed");
    }

    #[test]
    fn only_its_owner_may_read_the_requests_of_a_mix() {
        let run = folder("mix");
        let secret = MixedRequest {
            path: "/".to_owned(),
            headers: [("Authorization".to_owned(), "Bearer secret".to_owned())].into(),
            ..MixedRequest::default()
        };
        let mut spec = asking(Some("html"));
        spec.cells[0].http = Some(HttpCell { mix: true, ..HttpCell::default() });
        // The second time replaces a file of an earlier version, which everybody may read.
        for _ in 0..2 {
            let mut files = Files::asking(std::slice::from_ref(&secret)).below(run.clone());
            let trial = prepare(&mut files, &spec, &[]).expect("it can");
            let path = PathBuf::from(trial.substituted(REQUESTS));
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert!(fs::read_to_string(&path).expect("it is ours").contains("Bearer secret"));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
        }
        fs::remove_dir_all(&run).expect("it can be removed");
    }

    #[test]
    fn a_scratch_folder_lasts_as_long_as_the_trial() {
        let run = folder("scratch");
        let mut files = Files::default().below(run.clone());
        let trial = prepare(&mut files, &asking(Some("html")), &["--log={scratch}/l"]).expect("it can");
        let log = PathBuf::from(trial.substituted("{scratch}/l"));
        fs::write(&log, "a line").expect("it can be written");
        assert!(!run.join(CONTENTS).exists(), "nobody asked for a content");
        drop(trial);
        assert!(!log.parent().expect("a folder").exists());
        assert!(!run.join(SCRATCH).exists(), "nobody else has one");
        fs::remove_dir_all(&run).expect("it can be removed");
    }

    #[test]
    fn a_trial_of_a_killed_session_leaves_nothing_in_the_scratch_folder() {
        let run = folder("scratch-killed");
        let mut files = Files::default().below(run.clone());
        let words = ["--log={scratch}/l"];
        let first = prepare(&mut files, &asking(Some("html")), &words).expect("it can");
        let log = PathBuf::from(first.substituted("{scratch}/l"));
        fs::write(&log, "a line").expect("it can be written");
        // As SIGKILL does: nothing is cleared.
        std::mem::forget(first);
        let next = prepare(&mut Files::default().below(run.clone()), &asking(Some("html")), &words);
        let next = next.expect("it can");
        assert_eq!(next.substituted("{scratch}/l"), log.display().to_string());
        assert!(!log.exists() && log.parent().expect("a folder").exists(), "it begins with an empty one");
        drop(next);
        fs::remove_dir_all(&run).expect("it can be removed");
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let mut files = Files::default().below(folder("usage"));
        let error = prepare(&mut files, &asking(None), &["{content}"]).expect_err("it is echo");
        assert_eq!(error.to_string(), "arm epoll: a study of echo has no content to put into a command");
        assert!(prepare(&mut files, &asking(None), &["{port}"]).is_ok());
        let error = prepare(&mut Files::default(), &asking(Some("html")), &["{content}"]);
        assert!(matches!(error, Err(LaunchError::Environment(_))), "{error:?}");
    }
}
