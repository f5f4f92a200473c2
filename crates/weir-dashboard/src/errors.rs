//! Why a dashboard does not start, in the reader's language.

use std::{error::Error, fmt, io, net::SocketAddr, path::PathBuf};

use weir_report::{Language, localized};

/// Why a dashboard does not start.
#[derive(Debug)]
pub enum DashboardError {
    /// Another process listens there.
    InUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    Unlistenable {
        /// The requested address.
        address: SocketAddr,
        /// The system's message.
        source: io::Error,
    },
    /// The folder holds one study, and not several.
    OneStudy(PathBuf),
    /// The folder does not exist, or may not be read.
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// Other machines could act, and no origin of the pages was given.
    NoOrigins {
        /// The requested address.
        address: SocketAddr,
    },
    /// The folder of study files does not exist, or may not be read.
    NoStudies {
        /// The folder.
        folder: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The system gives no thread or event queue.
    Runtime(io::Error),
}

impl DashboardError {
    /// The error and its remedy. The system's message is quoted as it is.
    pub fn localized(&self, language: Language) -> String {
        match self {
            Self::InUse { address } => in_use(*address, language),
            Self::Unlistenable { address, source } => localized!(
                language,
                "cannot listen on {address}: {source}; write an address of this machine, such as --listen \
                 127.0.0.1:3000",
                "{address}에서 수신 대기할 수 없습니다: {source}. --listen 127.0.0.1:3000처럼 이 머신의 주소를 쓰십시오",
                "无法监听 {address}：{source}；请写本机的地址，例如 --listen 127.0.0.1:3000",
            ),
            Self::OneStudy(folder) => {
                let folder = folder.display();
                localized!(
                    language,
                    "{folder} is the folder of one study: name the folder that it is in, or see it with `weir report`",
                    "{folder}: 실험 하나의 폴더입니다. 이 폴더가 들어 있는 상위 폴더를 지정하거나, `weir report`로 보십시오",
                    "{folder} 是单个实验的文件夹：请指定它的上级文件夹，或用 `weir report` 查看",
                )
            }
            Self::Unreadable { folder, source } => {
                let folder = folder.display();
                localized!(
                    language,
                    "cannot read {folder}: {source}; name the folder that `weir study` writes its results to",
                    "{folder} 폴더를 읽을 수 없습니다: {source}. `weir study`가 결과를 저장하는 폴더를 지정하십시오",
                    "无法读取 {folder}：{source}；请指定 `weir study` 写入结果的文件夹",
                )
            }
            Self::NoOrigins { address } => no_origins(*address, language),
            Self::NoStudies { folder, source } => {
                let folder = folder.display();
                localized!(
                    language,
                    "--studies {folder}: {source}; name a folder of study files",
                    "--studies {folder}: {source}. 실험 파일이 있는 폴더를 지정하십시오",
                    "--studies {folder}：{source}；请指定存放实验文件的文件夹",
                )
            }
            Self::Runtime(source) => {
                localized!(
                    language,
                    "cannot start: {source}",
                    "시작할 수 없습니다: {source}",
                    "无法启动：{source}"
                )
            }
        }
    }
}

fn in_use(address: SocketAddr, language: Language) -> String {
    let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(3000));
    localized!(
        language,
        "{address} is in use; choose another port, such as --listen {next}, or end what listens there (`ss -ltnp` names \
         it)",
        "{address}: 이미 사용 중인 주소입니다. --listen {next}처럼 다른 포트를 쓰거나, 그 포트를 쓰는 프로세스를 종료하십시오(`ss -ltnp`로 확인)",
        "{address} 已被占用；请换一个端口，例如 --listen {next}，或结束占用该端口的进程（可用 `ss -ltnp` 查看）",
    )
}

fn no_origins(address: SocketAddr, language: Language) -> String {
    let port = address.port();
    localized!(
        language,
        "with a token {address}, which others reach, needs the origins whose pages may act: add --origin, such as \
         --origin http://lab.example:{port}",
        "{address}: 다른 머신에서도 접속할 수 있는 주소입니다. 토큰을 쓰려면 조작을 허용할 출처(origin)를 지정해야 합니다. --origin \
        http://lab.example:{port}처럼 --origin을 추가하십시오",
        "{address} 可从其他机器访问，使用令牌时必须指定允许执行操作的来源（origin）：请添加 --origin，例如 --origin \
         http://lab.example:{port}",
    )
}

impl fmt::Display for DashboardError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.localized(Language::English))
    }
}

impl Error for DashboardError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unlistenable { source, .. }
            | Self::Unreadable { source, .. }
            | Self::NoStudies { source, .. } => Some(source),
            Self::InUse { .. } | Self::OneStudy(_) | Self::NoOrigins { .. } | Self::Runtime(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_told_in_every_language_with_the_same_way_out() {
        let address: SocketAddr = "192.0.2.1:3000".parse().expect("an address");
        let folder = PathBuf::from("results");
        let source = || io::Error::other("out of luck");
        let errors: [(DashboardError, &[&str]); 7] = [
            (DashboardError::InUse { address }, &["192.0.2.1:3000", "--listen 192.0.2.1:3001", "ss -ltnp"]),
            (
                DashboardError::Unlistenable { address, source: source() },
                &["192.0.2.1:3000", "out of luck", "--listen 127.0.0.1:3000"],
            ),
            (DashboardError::OneStudy(folder.clone()), &["results", "`weir report`"]),
            (
                DashboardError::Unreadable { folder: folder.clone(), source: source() },
                &["results", "out of luck", "`weir study`"],
            ),
            (DashboardError::NoOrigins { address }, &["192.0.2.1:3000", "--origin http://lab.example:3000"]),
            (DashboardError::NoStudies { folder, source: source() }, &["--studies results", "out of luck"]),
            (DashboardError::Runtime(source()), &["out of luck"]),
        ];
        for (error, words) in errors {
            let texts = Language::ALL.map(|language| error.localized(language));
            assert_eq!(error.to_string(), texts[0]);
            assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
            for text in texts {
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }
}
