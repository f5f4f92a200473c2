//! Fixed texts of the dashboard's own pages, each in English, Korean and Chinese. Reports and charts have theirs in
//! `weir-report`.

/// A text in three languages.
pub(crate) type LocalizedText = [&'static str; 3];

pub(crate) const STUDIES: LocalizedText = ["Studies", "실험", "实验"];
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
pub(crate) const NEWER_PAGE: LocalizedText = ["Newer studies", "더 최근 실험", "较新的实验"];
pub(crate) const OLDER_PAGE: LocalizedText = ["Older studies", "더 이전 실험", "较早的实验"];

pub(crate) const NO_STUDIES: LocalizedText = [
    "No study is in this folder yet. In another terminal:",
    "이 폴더에는 아직 실험이 없습니다. 다른 터미널에서 실행하십시오.",
    "此文件夹中还没有实验。请在另一个终端运行：",
];
pub(crate) const FOLDER_GONE: LocalizedText = [
    "The results folder cannot be read; the terminal in which the dashboard runs says which it is.",
    "결과 폴더를 읽을 수 없습니다. 어느 폴더인지는 대시보드를 실행한 터미널에 표시됩니다.",
    "无法读取结果文件夹；运行仪表板的终端中显示了该文件夹。",
];
pub(crate) const NOTHING_RUNS: LocalizedText = [
    "No session works on a study of this folder. When one begins, it appears here.",
    "지금 이 폴더에서 실행 중인 실험이 없습니다. 실험이 시작되면 여기에 표시됩니다.",
    "此文件夹中没有正在运行的实验。实验开始后会显示在这里。",
];
pub(crate) const HAS_ENDED: LocalizedText =
    ["This session has ended:", "실험 세션이 끝났습니다:", "本次运行已结束："];
pub(crate) const PROVISIONAL: LocalizedText = [
    "Provisional: the schedule goes on whatever it is, and nothing is decided before its end.",
    "잠정 수치입니다. 값과 관계없이 계획대로 계속하며, 끝나기 전에는 판정하지 않습니다.",
    "暂定数值：无论结果如何都按计划继续，结束之前不作任何判定。",
];
pub(crate) const NO_ESTIMATE: LocalizedText = [
    "Too few rounds or blocks of the primary comparison are stored for an estimate.",
    "저장된 라운드나 블록이 적어 주 비교를 추정할 수 없습니다.",
    "已保存的轮次或区组不足，尚无法估计主要比较。",
];
pub(crate) const IN_PART: LocalizedText = [
    "More is stored than this page reads: progress and time left go on, the estimate stands where it stood. The report has \
     everything.",
    "저장된 양이 이 페이지에서 읽을 수 있는 한도를 넘었습니다. 진행 상황과 남은 시간은 계속 갱신되지만 추정값은 더 갱신되지 않습니다. 전체 결과는 보고서에 있습니다.",
    "已保存的数据超出此页面读取的范围：进度与剩余时间继续更新，估计值不再更新。全部数据见报告。",
];
pub(crate) const NOT_FOLLOWING: LocalizedText = [
    "This page does not follow the study at the moment. Load it again if that lasts.",
    "지금은 실험의 진행 상황을 받지 못하고 있습니다. 계속되면 페이지를 다시 불러오십시오.",
    "此页面暂时收不到实验的进展。如持续如此，请重新加载页面。",
];

pub(crate) const CHARTS_HELP: LocalizedText = [
    "Each chart has its own address, and other pages may frame it. Without a study it shows the newest study tps.",
    "차트마다 주소가 있으며, 다른 문서에 iframe으로 넣을 수 있습니다. 실험을 지정하지 않으면 가장 최근의 tps 실험을 표시합니다.",
    "每张图表都有自己的地址，可用 iframe 嵌入其他文档。不指定实验时，显示最近一次 tps 实验。",
];
pub(crate) const COPY: LocalizedText = ["Copy", "복사", "复制"];
pub(crate) const COPIED: LocalizedText = ["Copied", "복사됨", "已复制"];
pub(crate) const THEME: LocalizedText = ["Colours", "색상", "配色"];
pub(crate) const THEME_OF_READER: LocalizedText = ["as the reader prefers", "보는 사람의 설정", "按读者偏好"];
pub(crate) const THEME_LIGHT: LocalizedText = ["light", "밝게", "浅色"];
pub(crate) const THEME_DARK: LocalizedText = ["dark", "어둡게", "深色"];
pub(crate) const NOTHING_DRAWN: LocalizedText = [
    "This study has nothing to draw here: its cells do not differ in this, or it has no such observation.",
    "이 실험에는 여기에 그릴 내용이 없습니다. 해당 요인만 다른 조건이 없거나 관찰하지 않았습니다.",
    "本实验在此没有可绘制的内容：没有只在这一因子上不同的条件，或未作观测。",
];
pub(crate) const NO_TPS_STUDY: LocalizedText = [
    "No study tps is in this folder that can be read. Run one, or choose another study (?study=).",
    "이 폴더에는 읽을 수 있는 tps 실험이 없습니다. 실험을 실행하거나 다른 실험을 선택하십시오(?study=).",
    "此文件夹中没有可读取的 tps 实验。请先运行，或选择其他实验（?study=）。",
];
/// The number is [`crate::folder::LISTED_MAX`]: older studies are opened only for readers who name them.
pub(crate) const NO_NEW_TPS_STUDY: LocalizedText = [
    "None of the newest 1,000 studies of this folder is a study tps that can be read. Run one, or name an older one with \
     ?study=.",
    "이 폴더의 최근 실험 1,000개 중에는 읽을 수 있는 tps 실험이 없습니다. 실험을 실행하거나, ?study=로 더 이전의 실험을 지정하십시오.",
    "此文件夹最近的 1,000 项实验中没有可读取的 tps 实验。请先运行，或用 ?study= 指定更早的实验。",
];
pub(crate) const NO_SUCH_STUDY: LocalizedText = [
    "No study of this name is listed here.",
    "목록에 이런 이름의 실험이 없습니다.",
    "列表中没有这个名称的实验。",
];
pub(crate) const NO_SUCH_PAGE: LocalizedText =
    ["There is no such page.", "페이지가 없습니다.", "没有这个页面。"];
pub(crate) const FOREIGN_HOST: LocalizedText = [
    "This dashboard answers requests for an address of its machine, or for localhost. For another name it is started with \
     --host NAME.",
    "이 대시보드는 이 머신의 주소나 localhost로 온 요청에만 응답합니다. 다른 이름을 쓰려면 --host NAME으로 시작하십시오.",
    "此仪表板只应答以本机地址或 localhost 发来的请求。若要使用其他名称，请以 --host NAME 启动。",
];
pub(crate) const TWO_HOSTS: LocalizedText = [
    "This request has several Host lines. It must have one.",
    "이 요청에는 Host 헤더가 여러 개 있습니다. 하나만 보내야 합니다.",
    "此请求含有多个 Host 头，只能有一个。",
];
pub(crate) const FOREIGN_FETCH: LocalizedText = [
    "A page of another site asked for this. Other sites may link to this dashboard and frame its charts, and nothing else.",
    "다른 사이트의 페이지에서 보낸 요청입니다. 다른 사이트는 이 대시보드로 링크하거나 차트를 iframe으로 넣을 수만 있습니다.",
    "此请求来自其他网站的页面。其他网站只能链接到此仪表板，或用 iframe 嵌入其图表。",
];
pub(crate) const NO_ROOM: LocalizedText = [
    "Earlier answers still wait to be taken, and there is no room for this one. Load the page again in a moment.",
    "이전 응답을 아직 다 보내지 못해 지금은 이 응답을 보낼 수 없습니다. 잠시 후 페이지를 다시 불러오십시오.",
    "之前的应答尚未发送完毕，暂时无法发送此应答。请稍后重新加载页面。",
];
pub(crate) const TOO_MANY_CONNECTIONS: LocalizedText = [
    "Too many requests from your address are being answered. Load the page again in a few seconds.",
    "같은 주소에서 온 요청을 이미 많이 처리하고 있습니다. 몇 초 후 페이지를 다시 불러오십시오.",
    "来自您地址的连接过多，都在应答中。请在几秒后重新加载页面。",
];
pub(crate) const BROKEN: LocalizedText = [
    "This study could not be shown: what is stored of it makes no sense. weir report says more.",
    "이 실험을 표시할 수 없습니다. 저장된 내용이 올바르지 않습니다. 자세한 내용은 weir report로 확인하십시오.",
    "无法显示此实验：保存的内容无效。详情请用 weir report 查看。",
];

pub(crate) const DAMAGED: LocalizedText = [
    "The store is damaged, or is no store of a study. weir report says more.",
    "저장 파일이 손상되었거나 실험의 저장 파일이 아닙니다. 자세한 내용은 weir report로 확인하십시오.",
    "存储文件已损坏，或不是实验的存储文件。详情请用 weir report 查看。",
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
pub(crate) const COMPARE_TITLE: LocalizedText = ["Compare two studies", "두 실험 비교", "对比两项实验"];
pub(crate) const EARLIER: LocalizedText = ["Earlier (A)", "이전 실험(A)", "较早的实验（A）"];
pub(crate) const LATER: LocalizedText = ["Later (B)", "이후 실험(B)", "较晚的实验（B）"];
pub(crate) const COMPARE_HELP: LocalizedText = [
    "A part of a name is enough where only one study has it.",
    "입력한 부분이 한 실험의 이름에만 있으면, 이름의 일부만 써도 됩니다.",
    "若只有一个实验的名称包含它，输入名称的一部分即可。",
];
pub(crate) const NAME_BOTH: LocalizedText = [
    "Two studies are compared: name both.",
    "실험 두 개를 비교합니다. 두 이름을 모두 입력하십시오.",
    "对比需要两个实验：请填写两个名称。",
];
pub(crate) const NO_PAIR: LocalizedText = [
    "No study has two finished runs here, so these two may have nothing in common.",
    "끝난 실행이 두 번 이상인 실험이 없으므로, 이 두 실험에는 공통된 수치가 없을 수 있습니다.",
    "没有实验有两次已完成的运行，因此这两项可能没有共同的数据。",
];
pub(crate) const NOTHING_TO_COMPARE: LocalizedText = [
    "Fewer than two studies are in this folder: there is nothing to compare.",
    "이 폴더에 실험이 두 개 이상 없어 비교할 수 없습니다.",
    "此文件夹中的实验少于两项，无法对比。",
];
pub(crate) const NEWEST_TPS: LocalizedText = ["the newest tps", "가장 최근의 tps", "最近一次 tps"];
pub(crate) const SHOW: LocalizedText = ["Show", "표시", "显示"];
pub(crate) const ALL_RUNS: LocalizedText = ["All runs", "모든 실행", "所有运行"];
pub(crate) const NOTHING_TO_POOL: LocalizedText = [
    "Fewer than two finished runs of this study are among those listed here: there is nothing to pool.",
    "목록에 이 실험의 끝난 실행이 두 번 이상 없어 종합할 수 없습니다.",
    "列表中该实验已完成的运行少于两次，无法合并。",
];
pub(crate) const FIND_TEXT: LocalizedText = ["Text", "검색어", "文本"];
pub(crate) const ANY: LocalizedText = ["any", "전체", "全部"];
pub(crate) const ALL_STUDIES: LocalizedText = ["All studies", "모든 실험", "所有实验"];
pub(crate) const NOTHING_CHOSEN: LocalizedText =
    ["No study matches this choice.", "선택한 조건에 맞는 실험이 없습니다.", "没有符合所选条件的实验。"];
pub(crate) const DATE: LocalizedText = ["Date (UTC)", "날짜(UTC)", "日期（UTC）"];
pub(crate) const EFFECT: LocalizedText = ["Effect", "효과", "效应"];
pub(crate) const VERDICT: LocalizedText = ["Verdict", "판정", "判定"];
pub(crate) const MACHINE: LocalizedText = ["Machine", "머신", "机器"];
pub(crate) const DURATION: LocalizedText = ["Duration", "소요 시간", "时长"];
pub(crate) const ARM: LocalizedText = ["Arm", "대상", "方案"];
/// What the list can be narrowed to: the value in a query, and its word.
pub(crate) const STATES: [(&str, LocalizedText); 11] = [
    ("better", ["better", "나음", "更优"]),
    ("worse", ["worse", "못함", "更差"]),
    ("equivalent", ["equivalent", "동등", "相当"]),
    ("inconclusive", ["inconclusive", "보류", "无法判定"]),
    ("not-comparable", ["not comparable", "비교 불가", "不可比较"]),
    ("no-claim", ["no claim", "참고용", "仅供参考"]),
    ("running", RUNNING),
    ("unfinished", UNFINISHED),
    ("not-judged", NOT_JUDGED),
    ("judged-elsewhere", JUDGED_ELSEWHERE),
    ("unreadable", UNREADABLE),
];
pub(crate) const FIND: LocalizedText = ["Find", "찾기", "查找"];

pub(crate) const CONTROL: LocalizedText = ["Start and stop", "시작과 중지", "启动与停止"];
pub(crate) const TOKEN: LocalizedText = ["Token", "토큰", "令牌"];
pub(crate) const LOG_IN: LocalizedText = ["Log in", "로그인", "登录"];
pub(crate) const LOG_OUT: LocalizedText = ["Log out", "로그아웃", "退出登录"];
pub(crate) const STUDY: LocalizedText = ["Study", "실험", "实验"];
pub(crate) const START: LocalizedText = ["Start", "시작", "启动"];
pub(crate) const STOP: LocalizedText = ["Stop", "중지", "停止"];
pub(crate) const LOG_IN_TO_STOP: LocalizedText =
    ["Log in to stop it", "로그인하면 중지할 수 있습니다", "登录后可停止"];
pub(crate) const IS_ENDING: LocalizedText = ["It is ending.", "끝내는 중입니다.", "正在结束。"];
pub(crate) const START_HELP: LocalizedText = [
    "It measures on this machine, for minutes or hours. Whatever else runs here meanwhile, this dashboard included, \
     disturbs it.",
    "이 머신에서 몇 분에서 몇 시간 동안 측정합니다. 그동안 이 머신에서 실행되는 다른 작업(이 대시보드 포함)은 측정을 방해합니다.",
    "将在本机上测量数分钟到数小时。其间本机上运行的其他任务（包括此仪表板）都会干扰测量。",
];
pub(crate) const QUESTIONS: LocalizedText = ["What each study asks", "실험별 질문", "各项实验的问题"];
pub(crate) const OVER: LocalizedText = ["it has ended.", "끝났습니다.", "已结束。"];
pub(crate) const OVER_IN_PART: LocalizedText = [
    "it has ended; a part of it cannot run here.",
    "끝났습니다. 일부는 이 머신에서 실행할 수 없습니다.",
    "已结束；其中一部分无法在本机运行。",
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
    "먼저 실험 목록에서 로그인하십시오. 프로그램은 Authorization: Bearer 헤더로 토큰을 보냅니다.",
    "请先在实验列表页登录；程序请用 Authorization: Bearer 头发送令牌。",
];
pub(crate) const WRONG_TOKEN: LocalizedText = [
    "This is not the token. It is in the file that the dashboard was started with.",
    "토큰이 올바르지 않습니다. 토큰은 대시보드를 시작할 때 지정한 파일에 있습니다.",
    "令牌不正确。令牌保存在启动仪表板时指定的文件中。",
];
pub(crate) const TOO_MANY_TOKENS: LocalizedText = [
    "Too many wrong tokens within a minute: further ones are refused and not counted. The right one still works.",
    "1분 동안 잘못된 토큰이 너무 많이 입력되었습니다. 이후의 잘못된 토큰은 세지 않고 거부합니다. 올바른 토큰은 계속 쓸 수 있습니다.",
    "一分钟内错误令牌过多：后续的错误令牌会被拒绝，且不再计数。正确的令牌仍可使用。",
];
pub(crate) const TOKEN_UNREAD: LocalizedText = [
    "Too many tokens wait to be read, after wrong ones: yours was not read. Try again in a few seconds.",
    "잘못된 토큰 때문에 확인을 기다리는 토큰이 너무 많아, 보낸 토큰을 확인하지 않았습니다. 몇 초 뒤에 다시 시도하십시오.",
    "由于出现错误令牌，等待核对的令牌过多，您的令牌尚未核对。请在几秒后重试。",
];
pub(crate) const NOT_STARTED: LocalizedText =
    ["The system refused this:", "시스템이 요청을 거부했습니다:", "系统拒绝了此操作："];
pub(crate) const NO_FORM: LocalizedText = [
    "A form is expected here, of at most 4 KiB and in a few seconds.",
    "4 KiB 이하의 폼을 몇 초 안에 보내야 합니다.",
    "需要在数秒内收到不超过 4 KiB 的表单。",
];
pub(crate) const NOT_OFFERED: LocalizedText = [
    "No such study is offered here: use a built-in one, or a file of the folder given with --studies.",
    "이 대시보드에서 제공하지 않는 실험입니다. 기본 제공 실험이나 --studies로 지정한 폴더의 파일을 선택하십시오.",
    "此仪表板不提供该实验：请选择内置实验，或 --studies 所指定文件夹中的文件。",
];
pub(crate) const NO_SUCH_LEVELS: LocalizedText = [
    "This study has no plan of that name: choose one that the list of studies offers, such as tps/quick.",
    "이 실험에는 그런 이름의 계획이 없습니다. tps/quick처럼 실험 목록에 있는 것을 선택하십시오.",
    "该实验没有这个名称的计划：请选择实验列表页提供的选项，例如 tps/quick。",
];
pub(crate) const ANOTHER_RUNS: LocalizedText = [
    "Another study runs; two at a time would disturb each other. Stop it, or wait until it has ended.",
    "다른 실험이 실행 중입니다. 동시에 실행하면 서로 방해합니다. 실행 중인 실험을 중지하거나 끝날 때까지 기다리십시오.",
    "已有实验正在运行；同时运行会相互干扰。请将其停止，或等待其结束。",
];
pub(crate) const NOTHING_TO_STOP: LocalizedText = [
    "No study that was started here runs.",
    "이 대시보드에서 시작해 실행 중인 실험이 없습니다.",
    "没有从这里启动的实验在运行。",
];
pub(crate) const DASHBOARD_ENDS: LocalizedText = [
    "The dashboard is ending: nothing can be started any more.",
    "대시보드를 종료하는 중이므로 더 이상 시작할 수 없습니다.",
    "仪表板正在退出，无法再启动实验。",
];

pub(crate) const SERVERS: LocalizedText = ["Servers", "서버", "服务器"];
pub(crate) const SERVERS_HELP: LocalizedText = [
    "The figures of weir top, every two seconds. A rate is over the time since the previous look. Each small chart shows the \
     last two minutes in which a reader looked, on its own scale from 0.",
    "2초마다 weir top과 같은 수치를 표시합니다. 초당 값은 바로 전에 조회한 뒤의 시간으로 계산합니다. 작은 그래프는 조회한 동안의 최근 2분을 나타내며, 눈금은 그래프마다 0에서 시작합니다.",
    "每两秒显示 weir top 的数值。速率按距上次查看的时间计算。小图显示最近两分钟内有人查看时的数值，各图的刻度都从 0 开始，互不相同。",
];
pub(crate) const SERVER: LocalizedText = ["Server", "서버", "服务器"];
pub(crate) const PROCESS_SHORT: LocalizedText = ["Process", "프로세스", "进程"];
pub(crate) const PORT: LocalizedText = ["Port", "포트", "端口"];
pub(crate) const DRIVER: LocalizedText = ["Driver", "드라이버", "驱动"];
pub(crate) const RECEIVED_PER_SECOND: LocalizedText = ["Received/s", "수신/s", "接收/s"];
pub(crate) const SENT_PER_SECOND: LocalizedText = ["Sent/s", "송신/s", "发送/s"];
pub(crate) const BACKLOG: LocalizedText = ["Backlog", "밀린 메시지", "积压"];
pub(crate) const CPU_PERCENT: LocalizedText = ["CPU", "CPU", "CPU"];
pub(crate) const NO_ANSWER: LocalizedText = ["no answer", "응답 없음", "无应答"];
pub(crate) const RESTARTED: LocalizedText = ["restarted", "다시 시작됨", "已重启"];
pub(crate) const GONE: LocalizedText = ["ended", "종료됨", "已结束"];
pub(crate) const NO_SOCKET: LocalizedText = ["no socket", "소켓 없음", "无套接字"];
pub(crate) const PAUSE: LocalizedText = ["Pause", "일시 정지", "暂停"];
pub(crate) const NO_FIGURES: LocalizedText = [
    "The dashboard gives no figures at the moment.",
    "지금은 대시보드에서 수치를 받지 못하고 있습니다.",
    "暂时无法从仪表板获取数值。",
];
pub(crate) const THREADS: LocalizedText =
    ["Threads, hand-off and sessions", "스레드, 전달, 세션", "线程、移交与会话"];
pub(crate) const NO_SERVERS: LocalizedText = [
    "No weir serve of the dashboard's user runs here at the moment.",
    "지금 이 대시보드를 실행한 사용자의 weir serve 서버가 없습니다.",
    "目前没有由仪表板用户运行的 weir serve。",
];
pub(crate) const OBSERVE: LocalizedText = ["Observe", "관찰하기", "观测"];
pub(crate) const OBSERVATIONS: LocalizedText = ["Observations", "관찰", "观测"];
pub(crate) const OBSERVE_LIVE: LocalizedText =
    ["Observe a process now", "지금 프로세스 관찰하기", "实时观测进程"];
pub(crate) const OBSERVE_HELP: LocalizedText = [
    "What /proc shows of it and of its children since the previous reading, as weir observe shows it; every two \
     seconds.",
    "마지막으로 조회한 뒤의 프로세스와 그 자식 정보(/proc)를 2초마다 weir observe와 같은 형식으로 표시합니다.",
    "每两秒以 weir observe 的形式显示自上次查看以来该进程及其子进程在 /proc 中的信息。",
];
pub(crate) const OBSERVING_BEGINS: LocalizedText = [
    "It is observed from now on; figures come in a moment.",
    "관찰을 시작했습니다. 잠시 후 수치가 표시됩니다.",
    "已开始观测，数值稍后显示。",
];
pub(crate) const PROCESS: LocalizedText = ["Process number", "프로세스 번호", "进程号"];
pub(crate) const ANY_PROCESS: LocalizedText = [
    "After a login any other process can be observed, by its number.",
    "로그인하면 번호를 입력해 다른 프로세스도 관찰할 수 있습니다.",
    "登录后可按进程号观测任何其他进程。",
];
pub(crate) const NOT_OBSERVED: LocalizedText = [
    "Only servers that --stats names are observed for everybody; other processes need the token.",
    "토큰 없이 관찰할 수 있는 것은 --stats로 지정한 서버뿐입니다. 다른 프로세스를 관찰하려면 토큰이 필요합니다.",
    "无令牌时只能观测 --stats 所指定的服务器；观测其他进程需要令牌。",
];
pub(crate) const NO_SUCH_PROCESS: LocalizedText = [
    "There is no such process, or it may not be read by the user that the dashboard runs as.",
    "프로세스가 없거나, 대시보드를 실행한 사용자에게 읽을 권한이 없습니다.",
    "没有这个进程，或运行仪表板的用户无权读取。",
];
pub(crate) const RECORDED: LocalizedText = ["Recorded", "기록된 관찰", "已记录的观测"];
pub(crate) const NO_RECORDS: LocalizedText = [
    "No record is in the folder given with --records. weir observe --record FILE.json writes one.",
    "--records로 지정한 폴더에 관찰 기록이 없습니다. weir observe --record FILE.json으로 기록하십시오.",
    "--records 所指定的文件夹中没有观测记录。可用 weir observe --record FILE.json 生成。",
];
pub(crate) const NO_SUCH_RECORD: LocalizedText = [
    "No record of this name is listed here.",
    "목록에 이런 이름의 관찰 기록이 없습니다.",
    "列表中没有这个名称的观测记录。",
];
pub(crate) const NO_RECORD: LocalizedText = [
    "This file is no record of weir observe, or one of a later version. weir report says more.",
    "weir observe의 기록이 아니거나 더 새로운 버전의 기록입니다. 자세한 내용은 weir report로 확인하십시오.",
    "此文件不是 weir observe 的记录，或由更新的版本写入。详情请用 weir report 查看。",
];
pub(crate) const NO_ACCESS_RECORD: LocalizedText = [
    "The record is gone, or may not be read by the user that the dashboard runs as.",
    "기록 파일이 없어졌거나 대시보드를 실행한 사용자에게 읽을 권한이 없습니다.",
    "记录文件已不存在，或运行仪表板的用户无权读取。",
];
