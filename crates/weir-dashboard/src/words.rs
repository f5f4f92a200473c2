//! Fixed texts of the dashboard's own pages, each in English, Korean and Chinese. Reports and charts have theirs in
//! `weir-report`.

/// A text in three languages.
pub(crate) type Told = [&'static str; 3];

pub(crate) const STUDIES: Told = ["Studies", "연구", "研究"];
pub(crate) const CHARTS: Told = ["Charts", "차트", "图表"];
pub(crate) const LIVE: Told = ["Live", "실시간", "实时"];
pub(crate) const REPORT: Told = ["Report", "보고서", "报告"];
pub(crate) const LANGUAGES: Told = ["Languages", "언어", "语言"];
pub(crate) const RUNNING: Told = ["running", "실행 중", "运行中"];
pub(crate) const UNFINISHED: Told = ["unfinished", "미완료", "未完成"];
pub(crate) const NOT_JUDGED: Told = ["not judged yet", "아직 판정 없음", "尚未判定"];
pub(crate) const UNREADABLE: Told = ["cannot be read", "읽을 수 없음", "无法读取"];
pub(crate) const NEWER_PAGE: Told = ["Newer studies", "더 최근 연구", "较新的研究"];
pub(crate) const OLDER_PAGE: Told = ["Older studies", "더 이전 연구", "较早的研究"];

pub(crate) const NO_STUDIES: Told = [
    "No study is in this folder yet. In another terminal:",
    "이 폴더에는 아직 연구가 없습니다. 다른 터미널에서 실행하십시오.",
    "此文件夹中还没有研究。请在另一个终端运行：",
];
pub(crate) const FOLDER_GONE: Told = [
    "The results folder cannot be read; the terminal in which the dashboard runs says which it is.",
    "결과 폴더를 읽을 수 없습니다. 어느 폴더인지는 대시보드를 실행한 터미널에 표시되어 있습니다.",
    "无法读取结果文件夹；运行仪表板的终端中显示了该文件夹。",
];
pub(crate) const NOTHING_RUNS: Told = [
    "No session works on a study of this folder. When one begins, it appears here.",
    "지금 이 폴더에서 실행 중인 연구가 없습니다. 연구가 시작되면 여기에 표시됩니다.",
    "此文件夹中没有正在运行的研究。研究开始后会显示在这里。",
];
pub(crate) const HAS_ENDED: Told = ["This session has ended:", "연구 세션이 끝났습니다:", "本次运行已结束："];
pub(crate) const PROVISIONAL: Told = [
    "Provisional: the schedule goes on whatever it is, and nothing is decided before its end.",
    "잠정 수치입니다. 값과 관계없이 계획대로 진행하며, 끝나기 전에는 아무것도 판정하지 않습니다.",
    "暂定数值：无论结果如何都按计划继续，结束之前不作任何判定。",
];
pub(crate) const NO_ESTIMATE: Told = [
    "Too few rounds or blocks of the primary comparison are stored for an estimate.",
    "주 비교를 추정하기에는 저장된 라운드나 블록이 아직 부족합니다.",
    "已存储的轮次或区组尚不足以估计主要比较。",
];
pub(crate) const TOO_MANY_WATCH: Told = [
    "As many browsers watch as may at a time.",
    "동시에 볼 수 있는 브라우저 수를 넘었습니다.",
    "同时观看的浏览器已达上限。",
];

pub(crate) const CHARTS_HELP: Told = [
    "Each chart has an address of its own and may be framed by other pages. Without a study it is of the newest study tps.",
    "차트마다 주소가 있어 다른 문서에 iframe으로 넣을 수 있습니다. 연구를 지정하지 않으면 가장 최근의 tps 연구를 보여 줍니다.",
    "每张图表都有自己的地址，可用 iframe 嵌入其他文档。不指定研究时，显示最近一次 tps 研究。",
];
pub(crate) const NO_TPS_STUDY: Told = [
    "No study tps is in this folder that can be read. Run one, or name another study with ?study=.",
    "이 폴더에는 읽을 수 있는 tps 연구가 없습니다. 연구를 실행하거나 ?study=로 다른 연구를 지정하십시오.",
    "此文件夹中没有可读取的 tps 研究。请先运行，或用 ?study= 指定其他研究。",
];
pub(crate) const NO_SUCH_STUDY: Told = [
    "No study of this name is listed here.",
    "목록에 이런 이름의 연구가 없습니다.",
    "列表中没有这个名称的研究。",
];
pub(crate) const NO_SUCH_PAGE: Told = ["There is no such page.", "그런 페이지는 없습니다.", "没有这个页面。"];
pub(crate) const FOREIGN_HOST: Told = [
    "This dashboard answers requests for an address of its machine, or for localhost. For another name it is started with \
     --host NAME.",
    "이 대시보드는 이 머신의 주소나 localhost로 온 요청에만 응답합니다. 다른 이름을 쓰려면 --host NAME으로 시작하십시오.",
    "此仪表板只应答以本机地址或 localhost 发来的请求。若要使用其他名称，请以 --host NAME 启动。",
];
pub(crate) const BROKEN: Told = [
    "This study could not be shown: what is stored of it makes no sense. `weir report` says more.",
    "이 연구를 표시할 수 없습니다. 저장된 내용이 올바르지 않습니다. 자세한 내용은 `weir report`로 확인하십시오.",
    "无法显示此研究：存储的内容不合理。详情请用 `weir report` 查看。",
];

pub(crate) const DAMAGED: Told = [
    "The store is damaged, or is no store of a study. `weir report` says more.",
    "저장 파일이 손상되었거나 연구의 저장 파일이 아닙니다. 자세한 내용은 `weir report`로 확인하십시오.",
    "存储文件已损坏，或不是研究的存储文件。详情请用 `weir report` 查看。",
];
pub(crate) const NO_ACCESS: Told = [
    "The store may not be read by the user that the dashboard runs as.",
    "대시보드를 실행한 사용자에게 저장 파일을 읽을 권한이 없습니다.",
    "运行仪表板的用户无权读取存储文件。",
];
pub(crate) const BUSY: Told = [
    "The store is in use by another process at this moment; load the page again.",
    "지금 다른 프로세스가 저장 파일을 사용하고 있습니다. 페이지를 다시 불러오십시오.",
    "存储文件此刻正被另一进程使用；请重新加载页面。",
];
