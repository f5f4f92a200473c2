//! Fixed texts of the dashboard's own pages, each in English, Korean and Chinese. Reports and charts have theirs in
//! `weir-report`.

/// A text in three languages.
pub(crate) type LocalizedText = [&'static str; 3];

pub(crate) const STUDIES: LocalizedText = ["Studies", "연구", "研究"];
pub(crate) const CHARTS: LocalizedText = ["Charts", "차트", "图表"];
pub(crate) const HISTORY: LocalizedText = ["By commit", "커밋별", "按提交"];
pub(crate) const LIVE: LocalizedText = ["Live", "실시간", "实时"];
pub(crate) const REPORT: LocalizedText = ["Report", "보고서", "报告"];
pub(crate) const LANGUAGES: LocalizedText = ["Languages", "언어", "语言"];
pub(crate) const RUNNING: LocalizedText = ["running", "실행 중", "运行中"];
pub(crate) const UNFINISHED: LocalizedText = ["unfinished", "미완료", "未完成"];
pub(crate) const NOT_JUDGED: LocalizedText = ["not judged yet", "아직 판정 없음", "尚未判定"];
pub(crate) const JUDGED_ELSEWHERE: LocalizedText =
    ["judged by another version of Weir", "다른 버전의 Weir가 판정함", "由其他版本的 Weir 判定"];
pub(crate) const UNREADABLE: LocalizedText = ["cannot be read", "읽을 수 없음", "无法读取"];
pub(crate) const NEWER_PAGE: LocalizedText = ["Newer studies", "더 최근 연구", "较新的研究"];
pub(crate) const OLDER_PAGE: LocalizedText = ["Older studies", "더 이전 연구", "较早的研究"];

pub(crate) const NO_STUDIES: LocalizedText = [
    "No study is in this folder yet. In another terminal:",
    "이 폴더에는 아직 연구가 없습니다. 다른 터미널에서 실행하십시오.",
    "此文件夹中还没有研究。请在另一个终端运行：",
];
pub(crate) const FOLDER_GONE: LocalizedText = [
    "The results folder cannot be read; the terminal in which the dashboard runs says which it is.",
    "결과 폴더를 읽을 수 없습니다. 어느 폴더인지는 대시보드를 실행한 터미널에 표시되어 있습니다.",
    "无法读取结果文件夹；运行仪表板的终端中显示了该文件夹。",
];
pub(crate) const NOTHING_RUNS: LocalizedText = [
    "No session works on a study of this folder. When one begins, it appears here.",
    "지금 이 폴더에서 실행 중인 연구가 없습니다. 연구가 시작되면 여기에 표시됩니다.",
    "此文件夹中没有正在运行的研究。研究开始后会显示在这里。",
];
pub(crate) const HAS_ENDED: LocalizedText =
    ["This session has ended:", "연구 세션이 끝났습니다:", "本次运行已结束："];
pub(crate) const PROVISIONAL: LocalizedText = [
    "Provisional: the schedule goes on whatever it is, and nothing is decided before its end.",
    "잠정 수치입니다. 값과 관계없이 계획대로 진행하며, 끝나기 전에는 아무것도 판정하지 않습니다.",
    "暂定数值：无论结果如何都按计划继续，结束之前不作任何判定。",
];
pub(crate) const NO_ESTIMATE: LocalizedText = [
    "Too few rounds or blocks of the primary comparison are stored for an estimate.",
    "주 비교를 추정하기에는 저장된 라운드나 블록이 아직 부족합니다.",
    "已存储的轮次或区组尚不足以估计主要比较。",
];
pub(crate) const IN_PART: LocalizedText = [
    "More is stored than this page reads: progress and time left go on, the estimate stands where it stood. The report has \
     everything.",
    "이 페이지가 읽을 수 있는 것보다 많이 저장되어 추정값은 더는 갱신되지 않습니다. 진행 상황과 남은 시간은 계속 갱신되며, 보고서에는 모두 있습니다.",
    "已存储的数据超出此页面读取的范围：进度与剩余时间继续更新，估计值不再更新；报告包含全部数据。",
];
pub(crate) const NOT_FOLLOWING: LocalizedText = [
    "This page does not follow the study at the moment. Load it again if that lasts.",
    "지금은 이 페이지가 연구를 따라가지 못하고 있습니다. 계속되면 페이지를 다시 불러오십시오.",
    "此页面暂未跟踪研究的进展。如持续如此，请重新加载页面。",
];

pub(crate) const CHARTS_HELP: LocalizedText = [
    "Each chart has its own address and may be framed by other pages. Without a study it shows the newest study tps.",
    "차트마다 주소가 있어 다른 문서에 iframe으로 넣을 수 있습니다. 연구를 지정하지 않으면 가장 최근의 tps 연구를 보여 줍니다.",
    "每张图表都有自己的地址，可用 iframe 嵌入其他文档。不指定研究时，显示最近一次 tps 研究。",
];
pub(crate) const NO_TPS_STUDY: LocalizedText = [
    "No study tps is in this folder that can be read. Run one, or name another study with ?study=.",
    "이 폴더에는 읽을 수 있는 tps 연구가 없습니다. 연구를 실행하거나 ?study=로 다른 연구를 지정하십시오.",
    "此文件夹中没有可读取的 tps 研究。请先运行，或用 ?study= 指定其他研究。",
];
/// The number is [`crate::folder::LISTED_MAX`]: older studies are opened only for readers who name them.
pub(crate) const NO_NEW_TPS_STUDY: LocalizedText = [
    "None of the newest 1,000 studies of this folder is a study tps that can be read. Run one, or name an older one with \
     ?study=.",
    "이 폴더의 최근 연구 1,000개 중에는 읽을 수 있는 tps 연구가 없습니다. 연구를 실행하거나 ?study=로 더 오래된 연구를 지정하십시오.",
    "此文件夹最近的 1,000 项研究中没有可读取的 tps 研究。请先运行，或用 ?study= 指定更早的研究。",
];
pub(crate) const NO_SUCH_STUDY: LocalizedText = [
    "No study of this name is listed here.",
    "목록에 이런 이름의 연구가 없습니다.",
    "列表中没有这个名称的研究。",
];
pub(crate) const NO_SUCH_PAGE: LocalizedText =
    ["There is no such page.", "그런 페이지는 없습니다.", "没有这个页面。"];
pub(crate) const FOREIGN_HOST: LocalizedText = [
    "This dashboard answers requests for an address of its machine, or for localhost. For another name it is started with \
     --host NAME.",
    "이 대시보드는 이 머신의 주소나 localhost로 온 요청에만 응답합니다. 다른 이름을 쓰려면 --host NAME으로 시작하십시오.",
    "此仪表板只应答以本机地址或 localhost 发来的请求。若要使用其他名称，请以 --host NAME 启动。",
];
pub(crate) const FOREIGN_FETCH: LocalizedText = [
    "A page of another site asked for this. Other sites may link to this dashboard and frame its charts, and nothing else.",
    "다른 사이트의 페이지에서 보낸 요청입니다. 다른 사이트는 이 대시보드로 링크하거나 차트를 iframe으로 넣을 수만 있습니다.",
    "此请求来自其他网站的页面。其他网站只能链接到此仪表板，或用 iframe 嵌入其图表。",
];
pub(crate) const NO_ROOM: LocalizedText = [
    "Earlier answers still wait to be taken, and there is no room for this one. Load the page again in a moment.",
    "이전 응답이 아직 다 전송되지 않아 지금은 이 응답을 보낼 수 없습니다. 잠시 후 페이지를 다시 불러오십시오.",
    "之前的应答尚未发送完毕，暂时无法发送此应答。请稍后重新加载页面。",
];
pub(crate) const BROKEN: LocalizedText = [
    "This study could not be shown: what is stored of it makes no sense. `weir report` says more.",
    "이 연구를 표시할 수 없습니다. 저장된 내용이 올바르지 않습니다. 자세한 내용은 `weir report`로 확인하십시오.",
    "无法显示此研究：存储的内容无效。详情请用 `weir report` 查看。",
];

pub(crate) const DAMAGED: LocalizedText = [
    "The store is damaged, or is no store of a study. `weir report` says more.",
    "저장 파일이 손상되었거나 연구의 저장 파일이 아닙니다. 자세한 내용은 `weir report`로 확인하십시오.",
    "存储文件已损坏，或不是研究的存储文件。详情请用 `weir report` 查看。",
];
pub(crate) const NO_ACCESS: LocalizedText = [
    "The store may not be read by the user that the dashboard runs as.",
    "대시보드를 실행한 사용자에게 저장 파일을 읽을 권한이 없습니다.",
    "运行仪表板的用户无权读取存储文件。",
];
pub(crate) const BUSY: LocalizedText = [
    "The store is in use by another process at this moment; load the page again.",
    "지금 다른 프로세스가 저장 파일을 사용하고 있습니다. 페이지를 다시 불러오십시오.",
    "存储文件此刻正被另一进程使用；请重新加载页面。",
];

pub(crate) const COMPARE: LocalizedText = ["Compare", "비교", "对比"];
pub(crate) const COMPARE_TITLE: LocalizedText = ["Compare two studies", "두 연구 비교", "对比两项研究"];
pub(crate) const EARLIER: LocalizedText = ["Earlier (A)", "이전 연구(A)", "较早的研究（A）"];
pub(crate) const LATER: LocalizedText = ["Later (B)", "이후 연구(B)", "较晚的研究（B）"];
pub(crate) const COMPARE_HELP: LocalizedText = [
    "A part of a name is enough where only one study has it.",
    "한 연구에만 있는 부분이라면 이름의 일부만 입력해도 됩니다.",
    "若只有一个研究的名称包含它，输入名称的一部分即可。",
];
pub(crate) const NAME_BOTH: LocalizedText = [
    "Two studies are compared: name both.",
    "연구 두 개를 비교합니다. 두 이름을 모두 입력하십시오.",
    "对比需要两个研究：请填写两个名称。",
];
pub(crate) const ALL_RUNS: LocalizedText = ["All runs", "모든 실행", "所有运行"];
pub(crate) const NOTHING_TO_POOL: LocalizedText = [
    "Fewer than two finished runs of this study are among those listed here: there is nothing to pool.",
    "목록에 이 연구의 끝난 실행이 두 번 미만이어서 종합할 것이 없습니다.",
    "列表中该研究已完成的运行不足两次，无法合并。",
];
pub(crate) const NAME_HAS: LocalizedText = ["Name contains", "이름에 포함", "名称包含"];
pub(crate) const FIND: LocalizedText = ["Find", "찾기", "查找"];

pub(crate) const CONTROL: LocalizedText = ["Start and stop", "시작과 중지", "启动与停止"];
pub(crate) const TOKEN: LocalizedText = ["Token", "토큰", "令牌"];
pub(crate) const LOG_IN: LocalizedText = ["Log in", "로그인", "登录"];
pub(crate) const LOG_OUT: LocalizedText = ["Log out", "로그아웃", "退出登录"];
pub(crate) const STUDY: LocalizedText = ["Study", "연구", "研究"];
pub(crate) const START: LocalizedText = ["Start", "시작", "启动"];
pub(crate) const STOP: LocalizedText = ["Stop", "중지", "停止"];
pub(crate) const IS_ENDING: LocalizedText = ["It is ending.", "끝내는 중입니다.", "正在结束。"];
pub(crate) const START_HELP: LocalizedText = [
    "It measures on this machine, for minutes or hours. Whatever else runs here meanwhile, this dashboard included, \
     disturbs it.",
    "이 머신에서 몇 분에서 몇 시간 동안 측정합니다. 그동안 이 대시보드를 포함해 여기서 실행되는 다른 작업은 측정을 방해합니다.",
    "将在本机上测量数分钟到数小时。其间本机上运行的其他任务（包括此仪表板）都会干扰测量。",
];
pub(crate) const QUESTIONS: LocalizedText =
    ["What each study asks", "연구마다 답하려는 질문", "各项研究要回答的问题"];
pub(crate) const STOP_HELP: LocalizedText = [
    "It gives up the block that runs. Those that are done stay, and `weir study --resume` goes on with them.",
    "진행 중인 블록은 버립니다. 끝난 블록은 남으며 `weir study --resume`으로 이어서 실행할 수 있습니다.",
    "会放弃正在进行的区组。已完成的会保留，可用 `weir study --resume` 继续。",
];
pub(crate) const OVER: LocalizedText = ["it has ended.", "끝났습니다.", "已结束。"];
pub(crate) const OVER_IN_PART: LocalizedText = [
    "it has ended; a part of it cannot run here.",
    "끝났습니다. 일부는 이 머신에서 실행할 수 없습니다.",
    "已结束；其中一部分无法在本机运行。",
];
pub(crate) const STOPPED: LocalizedText = [
    "it was stopped; `weir study --resume` goes on with it.",
    "중지되었습니다. `weir study --resume`으로 이어서 실행할 수 있습니다.",
    "已停止，可用 `weir study --resume` 继续。",
];
pub(crate) const ENDED_SOMEHOW: LocalizedText = [
    "it has ended; the system did not say how:",
    "끝났지만 시스템이 종료 상태를 알려 주지 않았습니다:",
    "已结束，但系统未告知其退出状态：",
];

pub(crate) const FOREIGN_PAGE: LocalizedText = [
    "This request does not come from a page of this dashboard, or not from an origin that may act; for another one it is \
     started with --origin.",
    "이 대시보드의 페이지에서 온 요청이 아니거나 허용된 출처(origin)가 아닙니다. 다른 출처를 허용하려면 --origin으로 시작하십시오.",
    "此请求不是来自本仪表板的页面，或其来源（origin）未被允许。若要允许其他来源，请以 --origin 启动。",
];
pub(crate) const NO_TOKEN: LocalizedText = [
    "Log in on the list of studies first; a program sends the token in the header Authorization: Bearer.",
    "먼저 연구 목록에서 로그인하십시오. 프로그램은 Authorization: Bearer 헤더로 토큰을 보냅니다.",
    "请先在研究列表页登录；程序请用 Authorization: Bearer 头发送令牌。",
];
pub(crate) const WRONG_TOKEN: LocalizedText = [
    "This is not the token. It is in the file that the dashboard was started with.",
    "토큰이 올바르지 않습니다. 토큰은 대시보드를 시작할 때 지정한 파일에 있습니다.",
    "令牌不正确。令牌保存在启动仪表板时指定的文件中。",
];
pub(crate) const TOO_MANY_TOKENS: LocalizedText = [
    "Too many wrong tokens within a minute: further ones are refused and not counted. The right one still works.",
    "1분 동안 잘못된 토큰이 너무 많았습니다. 이후의 잘못된 토큰은 세지 않고 거부하며, 올바른 토큰은 계속 사용할 수 있습니다.",
    "一分钟内错误令牌过多：后续错误令牌将被拒绝且不再计数，正确的令牌仍可使用。",
];
pub(crate) const NOT_STARTED: LocalizedText =
    ["The system refused this:", "시스템이 요청을 거부했습니다:", "系统拒绝了此操作："];
pub(crate) const NO_FORM: LocalizedText = [
    "A form is expected here, of at most 4 KiB and in a few seconds.",
    "여기에는 4 KiB 이하의 폼을 몇 초 안에 보내야 합니다.",
    "此处需要在数秒内收到不超过 4 KiB 的表单。",
];
pub(crate) const NOT_OFFERED: LocalizedText = [
    "No such study is offered here: use a built-in one, or a file of the folder given with --studies.",
    "그런 연구는 제공되지 않습니다. 기본 제공 연구나 --studies로 지정한 폴더의 파일을 선택하십시오.",
    "此处不提供该研究：请选择内置研究，或 --studies 所指定文件夹中的文件。",
];
pub(crate) const NO_SUCH_LEVELS: LocalizedText = [
    "This study has no plan of that name: choose one that the list of studies offers, such as tps/quick.",
    "이 연구에는 그런 이름의 계획이 없습니다. tps/quick처럼 연구 목록에 있는 것을 선택하십시오.",
    "该研究没有这个名称的计划：请选择研究列表页提供的选项，例如 tps/quick。",
];
pub(crate) const ANOTHER_RUNS: LocalizedText = [
    "Another study runs; two at a time would disturb each other. Stop it, or wait until it has ended.",
    "다른 연구가 실행 중입니다. 동시에 실행하면 서로 방해합니다. 중지하거나 끝날 때까지 기다리십시오.",
    "已有研究正在运行；同时运行会相互干扰。请将其停止，或等待其结束。",
];
pub(crate) const NOTHING_TO_STOP: LocalizedText = [
    "No study that was started here runs.",
    "여기서 시작한 연구 중 실행 중인 것이 없습니다.",
    "没有从这里启动的研究在运行。",
];
pub(crate) const DASHBOARD_ENDS: LocalizedText = [
    "The dashboard is ending: nothing can be started any more.",
    "대시보드를 종료하는 중이므로 더 이상 시작할 수 없습니다.",
    "仪表板正在退出，无法再启动研究。",
];

pub(crate) const SERVERS: LocalizedText = ["Servers", "서버", "服务器"];
pub(crate) const SERVERS_HELP: LocalizedText = [
    "What weir top shows of the servers that --stats names; rates are over the time since somebody looked last. \
     The page loads itself again every two seconds.",
    "--stats로 지정한 서버를 weir top과 같은 내용으로 보여 줍니다. 초당 값은 마지막 조회 이후 구간에서 계산합니다. 이 페이지는 2초마다 다시 불러옵니다.",
    "以 weir top 的形式显示 --stats 所指定的服务器；速率按距上次查看的时间计算。此页面每两秒自动刷新。",
];
pub(crate) const NO_SERVERS: LocalizedText = [
    "No `weir serve` of the dashboard's user runs here at the moment.",
    "지금 이 대시보드를 실행한 사용자의 `weir serve` 서버가 없습니다.",
    "目前没有由仪表板用户运行的 `weir serve`。",
];
pub(crate) const OBSERVE: LocalizedText = ["Observe", "관찰하기", "观测"];
pub(crate) const OBSERVATIONS: LocalizedText = ["Observations", "관찰", "观测"];
pub(crate) const OBSERVE_LIVE: LocalizedText =
    ["Observe a process now", "지금 프로세스 관찰하기", "实时观测进程"];
pub(crate) const OBSERVE_HELP: LocalizedText = [
    "What /proc shows of it and of its children since the previous reading, as weir observe shows it. The page loads itself \
     again every two seconds.",
    "마지막으로 조회한 뒤 프로세스와 그 자식에 대해 /proc에서 알 수 있는 내용을 weir observe와 같은 형식으로 보여 줍니다. 이 페이지는 2초마다 다시 불러옵니다.",
    "以 weir observe 的形式显示自上次查看以来 /proc 中该进程及其子进程的信息。此页面每两秒自动刷新。",
];
pub(crate) const OBSERVING_BEGINS: LocalizedText = [
    "It is observed from now on; figures come in a moment.",
    "이제부터 관찰합니다. 잠시 후 수치가 표시됩니다.",
    "已开始观测，数据稍后显示。",
];
pub(crate) const PROCESS: LocalizedText = ["Process number", "프로세스 번호", "进程号"];
pub(crate) const ANY_PROCESS: LocalizedText = [
    "After a login any other process can be observed, by its number.",
    "로그인하면 번호를 입력해 다른 프로세스도 관찰할 수 있습니다.",
    "登录后可按进程号观测任何其他进程。",
];
pub(crate) const NOT_OBSERVED: LocalizedText = [
    "Everybody can observe the servers that --stats names; other processes need the token.",
    "누구나 관찰할 수 있는 것은 --stats로 지정한 서버뿐이며, 다른 프로세스는 토큰이 있어야 관찰할 수 있습니다.",
    "所有人都可观测的只有 --stats 所指定的服务器；其他进程需持有令牌。",
];
pub(crate) const NO_SUCH_PROCESS: LocalizedText = [
    "There is no such process, or it may not be read by the user that the dashboard runs as.",
    "그런 프로세스가 없거나 대시보드를 실행한 사용자에게 읽을 권한이 없습니다.",
    "没有这个进程，或运行仪表板的用户无权读取。",
];
pub(crate) const RECORDED: LocalizedText = ["Recorded", "기록된 관찰", "已记录的观测"];
pub(crate) const NO_RECORDS: LocalizedText = [
    "No record is in the folder given with --records. `weir observe --record FILE.json` writes one.",
    "--records로 지정한 폴더에 관찰 기록이 없습니다. `weir observe --record FILE.json`으로 기록하십시오.",
    "--records 所指定的文件夹中没有观测记录。可用 `weir observe --record FILE.json` 生成。",
];
pub(crate) const NO_SUCH_RECORD: LocalizedText = [
    "No record of this name is listed here.",
    "목록에 이런 이름의 관찰 기록이 없습니다.",
    "列表中没有这个名称的观测记录。",
];
pub(crate) const NO_RECORD: LocalizedText = [
    "This file is no record of weir observe, or one of a later version. `weir report` says more.",
    "weir observe의 기록이 아니거나 더 새로운 버전의 기록입니다. 자세한 내용은 `weir report`로 확인하십시오.",
    "此文件不是 weir observe 的记录，或由更新的版本写入。详情请用 `weir report` 查看。",
];
pub(crate) const NO_ACCESS_RECORD: LocalizedText = [
    "The record is gone, or may not be read by the user that the dashboard runs as.",
    "기록 파일이 없어졌거나 대시보드를 실행한 사용자에게 읽을 권한이 없습니다.",
    "记录文件已不存在，或运行仪表板的用户无权读取。",
];
