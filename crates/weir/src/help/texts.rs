//! Texts of the help in Korean and Chinese; English is in the definition of the command line.

use weir_report::Language;

mod compare;
mod ctl;
mod journal;

use compare::{AFTER_COMPARE, COMPARE, HISTORY};
use ctl::AFTER_CTL;
use journal::{AFTER_EXPORT, AFTER_PRINT, JOURNAL};

/// A name, with its text in Korean and Chinese.
type Row = (&'static str, [&'static str; 2]);

/// The purpose of each command; the first is the program itself.
const COMMANDS: [Row; 53] = [
    (
        "",
        [
            "이 머신에서 어느 I/O 모델이 얼마나 더 빠른지, 왜 그런지, 그 수치를 믿을 수 있는지 측정합니다",
            "测量本机上哪种 I/O 模型更快、快多少、原因是什么，以及这个数值是否可信",
        ],
    ),
    ("help", ["이 도움말, 또는 지정한 명령의 도움말을 출력합니다", "显示本帮助，或指定命令的帮助"]),
    ("study", ["실험 실행: 계획, 측정, 관찰, 판정, 보고", "运行实验：计划、测量、观测、判定、报告"]),
    (
        "study diff",
        [
            "저장된 실험을 이전 결과와 조건별로 비교합니다. 절대 수치가 아니라 비교 대상의 비율을 비교합니다",
            "将已保存的实验与更早的一次逐条件比较：比较方案的比值，而不是绝对数值",
        ],
    ),
    (
        "study pool",
        [
            "한 실험의 여러 실행을 종합합니다: 종합한 값, 실행 간 편차, 다음 실행의 예측 범위",
            "合并同一实验的多次运行：合并值、运行间偏差、下一次运行的预测范围",
        ],
    ),
    (
        "compare",
        [
            "끝나는 명령들을 비교합니다: 어느 명령이 CPU 시간을 얼마나 덜 쓰는지, 그 결과를 믿을 수 있는지",
            "比较会自行结束的命令：哪个用的 CPU 时间更少、少多少、结果是否可信",
        ],
    ),
    (
        "doctor",
        [
            "이 머신에서 실행하고 측정할 수 있는 것, 할 수 없는 것, 그것을 가능하게 하는 방법",
            "本机能运行和测量什么、不能做什么，以及如何解除限制",
        ],
    ),
    ("serve", ["지정한 드라이버로 서버를 실행합니다", "用指定的驱动运行服务器"]),
    ("serve echo", ["받은 바이트를 모두 돌려보냅니다(RFC 862)", "原样返回每个字节（RFC 862）"]),
    ("serve http", ["HTTP/1.1 요청에 응답합니다", "响应 HTTP/1.1 请求"]),
    (
        "serve exchange",
        ["거래소처럼 주문을 받습니다(SoupBinTCP와 OUCH)", "像交易所一样接收订单（SoupBinTCP 与 OUCH）"],
    ),
    ("serve gateway", ["고객의 주문을 받아 거래소로 보냅니다", "接收客户的订单并发往交易所"]),
    ("load", ["서버에 부하를 주고 모든 바이트를 검사합니다", "对服务器施加负载并检查每个字节"]),
    (
        "load echo",
        [
            "에코 서버에 메시지를 보내고 돌아온 바이트를 모두 검사합니다",
            "向回显服务器发送消息并检查返回的每个字节",
        ],
    ),
    ("load http", ["HTTP/1.1 요청을 보내고 모든 응답을 검사합니다", "发送 HTTP/1.1 请求并检查每个响应"]),
    (
        "load orders",
        [
            "게이트웨이나 거래소에 주문을 보내고 모든 응답을 검사합니다",
            "向网关或交易所发送订单并检查每个应答",
        ],
    ),
    (
        "storage",
        [
            "디스크를 기다리는 모든 방식을 파일이나 시뮬레이터에서 시험합니다",
            "在文件或模拟器上尝试等待磁盘的各种方式",
        ],
    ),
    (
        "storage run",
        ["지정한 엔진과 대기 방식으로 파일을 읽거나 쓰며 측정합니다", "用指定的引擎和等待方式读写文件并测量"],
    ),
    (
        "storage simulate",
        [
            "모델 장치나 기록된 트레이스에서 완료 대기 방식을 비교합니다",
            "在模型设备或实录的轨迹上比较等待完成的方式",
        ],
    ),
    (
        "storage capture",
        ["커널의 블록 트레이스포인트로 장치 시간을 기록합니다", "用内核的块设备跟踪点记录设备时间"],
    ),
    (
        "top",
        [
            "실행 중인 서버 보기: 메시지 처리율, 스레드별 컨텍스트 스위치와 CPU, 스레드 간 전달, 세션",
            "查看运行中的服务器：消息速率、各线程的上下文切换与 CPU、线程间移交、会话",
        ],
    ),
    (
        "observe",
        [
            "프로세스 관찰: 스레드 활동. --trace를 쓰면 모든 시스템 콜과 시간을 쓴 곳",
            "观测任意进程：各线程的活动；加 --trace 可查看每个系统调用与时间去向",
        ],
    ),
    (
        "ctl",
        ["실행 중인 게이트웨이 조작: 한도, 킬 스위치, 종료", "操作运行中的网关：限额、紧急停止、有序关闭"],
    ),
    (
        "ctl limits",
        [
            "한도를 보거나 바꿉니다: weir ctl limits --account C00001 shares_max=1000 notional_max=off",
            "查看或更改限额：weir ctl limits --account C00001 shares_max=1000 notional_max=off",
        ],
    ),
    (
        "ctl references",
        [
            "주문 가격의 기준가를 보거나 정합니다: weir ctl references WEIR=12.50",
            "查看或设置衡量订单价格的参考价：weir ctl references WEIR=12.50",
        ],
    ),
    (
        "ctl kill",
        [
            "한 계좌나 전체를 정지합니다: 새 주문은 거부하고 미체결 주문은 취소합니다",
            "停止某个账户或全部账户：拒绝新订单，撤销未成交订单",
        ],
    ),
    (
        "ctl drain",
        [
            "게이트웨이를 정상 종료합니다. 다시 시작하면 고객은 세션을 계속할 수 있습니다",
            "正常关闭网关；下次启动后客户可继续其会话",
        ],
    ),
    (
        "ctl end-session",
        [
            "고객과의 세션을 끝내고 게이트웨이를 종료합니다. 다시 시작하면 새 세션이 됩니다",
            "结束与客户的会话并关闭网关；下次启动为新会话",
        ],
    ),
    (
        "ctl start-of-day",
        [
            "거래일, 또는 [day]에서 지금 열릴 세션을 시작합니다: 주문을 받습니다",
            "开始交易日，或 [day] 中当前应开始的时段：接受订单",
        ],
    ),
    (
        "ctl end-of-day",
        [
            "거래일을 끝냅니다: 주문을 거부하고, 미체결 주문이 없으면 고객과의 세션을 끝냅니다",
            "结束交易日：拒绝订单，没有未成交订单时结束与客户的会话",
        ],
    ),
    (
        "ctl reload",
        [
            "구성 파일을 다시 읽습니다: 계좌, 비밀번호, 한도, 경로, 거래소 주소를 모두 바꾸거나 아무것도 바꾸지 않습니다",
            "重新读取配置文件：账户、密码、限额、路由、交易所地址；要么全部生效，要么什么都不改",
        ],
    ),
    (
        "ctl sessions",
        [
            "고객 및 거래소와의 세션을 보고, 열려 있지 않으면 그 까닭을 봅니다",
            "查看与客户及交易所的会话，以及会话未打开的原因",
        ],
    ),
    ("ctl orders", ["미체결 주문을 한 번에 천 개까지 봅니다", "查看未成交订单，每次一千条"]),
    (
        "ctl positions",
        [
            "저널의 첫 기록부터 계좌와 종목별로 체결된 수량을 봅니다",
            "查看自日志首条记录以来各账户、各代码的成交数量",
        ],
    ),
    (
        "ctl exposure",
        [
            "계좌의 익스포저와 그 한도를 봅니다. 한 계좌를 지정하면 주문별로도 봅니다",
            "查看账户的敞口及其限额；指定一个账户时还按订单列出",
        ],
    ),
    (
        "ctl cancel",
        [
            "미체결 주문 하나, 또는 한 계좌, 종목, 거래소의 미체결 주문을 취소합니다",
            "撤销一个未成交订单，或某账户、代码、交易所的未成交订单",
        ],
    ),
    (
        "ctl disconnect",
        ["고객의 연결을 끊습니다. 고객은 다시 로그인할 수 있습니다", "断开某个客户的连接；客户可以重新登录"],
    ),
    ("ctl unlock", ["비밀번호를 여러 번 틀려 잠긴 로그인을 풉니다", "解除因多次输错密码而锁定的登录"]),
    (
        "ctl hash-password",
        [
            "표준 입력의 비밀번호로 설정 파일에 쓸 해시를 출력합니다",
            "从标准输入读取密码，输出配置文件所用的哈希",
        ],
    ),
    (
        "journal",
        ["게이트웨이나 거래소의 저널을 읽고 검사하고 복구합니다", "读取、检查和修复网关或交易所的日志"],
    ),
    (
        "journal print",
        [
            "게이트웨이나 거래소의 저널 레코드를 출력합니다. 실행 중이어도 됩니다",
            "输出网关或交易所日志中的记录，运行中也可以",
        ],
    ),
    (
        "journal verify",
        ["저널의 모든 레코드를 검사하고 손상된 곳을 알려 줍니다", "检查日志的每条记录，并说明何处损坏"],
    ),
    ("journal stats", ["저널에 든 것을 셉니다", "统计日志的内容"]),
    (
        "journal repair",
        [
            "손상된 저널에서 손상 앞에서 끝나는 사본을 만들고 잃는 것을 알려 줍니다",
            "为损坏的日志生成在损坏处之前结束的副本，并说明丢失了什么",
        ],
    ),
    (
        "journal tail",
        [
            "마지막 레코드를 출력하고, -f를 쓰면 뒤이어 쓰이는 레코드도 출력합니다",
            "输出最后的记录；用 -f 时还输出之后写入的记录",
        ],
    ),
    (
        "journal export",
        [
            "모든 세션의 메시지를 Wireshark와 tshark에서 읽는 패킷 캡처로 씁니다",
            "将所有会话的消息写成数据包捕获文件，供 Wireshark 和 tshark 读取",
        ],
    ),
    (
        "journal archive",
        ["시작할 때도 고객에게도 더는 필요 없는 파일을 옮깁니다", "移走启动和客户都不再需要的文件"],
    ),
    ("report", ["실험이나 관찰의 보고서를 다시 씁니다", "重新生成实验或观测的报告"]),
    ("export", ["실험 데이터를 출력합니다", "输出实验的数据"]),
    (
        "history",
        [
            "저장된 실행의 결과를 커밋별로 표시합니다: 고정된 참조 대비 효과와 신뢰구간",
            "按提交查看已保存运行的结果：相对固定参照的效应及其置信区间",
        ],
    ),
    (
        "dashboard",
        [
            "저장된 실험을 브라우저로 보기: 목록, 보고서, 다른 페이지에 넣을 수 있는 차트",
            "在浏览器中查看已保存的实验：列表、报告，以及可嵌入其他页面的图表",
        ],
    ),
    ("completions", ["셸의 명령 완성 스크립트를 출력합니다", "输出 shell 的命令补全脚本"]),
    ("man", ["매뉴얼 페이지 하나를 출력하거나 전부 파일로 씁니다", "输出一页手册，或将全部手册写入文件"]),
];

/// Descriptions of flags of `weir study`; those of every command stand last.
const STUDY: [Row; 51] = [
    (
        "study",
        [
            "내장 실험의 이름(목록: `weir study --list`) 또는 실험 파일(NAME.toml). --resume에는 필요 없습니다",
            "内置实验的名称（`weir study --list` 列出），或实验文件（NAME.toml）；用 --resume 时不需要",
        ],
    ),
    ("list", ["내장 실험과 각 실험의 질문을 나열하고, 실행하지는 않습니다", "列出内置实验及其问题，不运行"]),
    ("protocol", ["peers 실험의 프로토콜: echo 또는 http", "peers 实验的协议：echo 或 http"]),
    (
        "published_plan",
        [
            "발표된 조건대로 실행합니다: survey는 사용자 수, 점증 시간, 길이(2시간 미만), polling은 20초 작업, gateway는 모든 드라이버와 워커 1개, 2개(몇 시간)",
            "按公布的条件运行：survey 的用户数、渐增时间与时长（不到两小时），polling 的 20 秒作业；gateway 为每种驱动各用一个和两个工作线程（数小时）",
        ],
    ),
    (
        "levels",
        [
            "실험을 줄입니다: 파일에 있는 계획(tps는 quick, standard, full) 또는 FACTOR=LEVEL,LEVEL. 요인마다 반복해 쓸 수 있습니다",
            "缩小实验：文件中的计划（tps 有 quick、standard、full），或 FACTOR=LEVEL,LEVEL，可对每个因子各写一次",
        ],
    ),
    (
        "arm",
        [
            "비교 대상을 추가합니다: NAME=\"./server --port {port}\". 필요하면 {cpus}, {workers}, {address}를 쓸 수 있고, HTTP 실험에서는 응답할 \
            파일 {content}와 {content_type}도 쓸 수 있습니다. 이미 실행 중인 서버는 NAME=tcp://HOST:PORT로, HTTP 실험에서는 \
            NAME=http://HOST:PORT로 씁니다. --only-arms를 쓰면 파일에 있는 대상의 이름만 써도 됩니다",
            "增加一个方案：NAME=\"./server --port {port}\"，可按需使用 {cpus}、{workers}、{address}；HTTP 实验中还可用 {content}（用作响应的文件）和 \
            {content_type}。已在运行的服务器写作 NAME=tcp://HOST:PORT，HTTP 实验中写作 NAME=http://HOST:PORT。使用 --only-arms \
            时，也可只写文件中方案的名称",
        ],
    ),
    (
        "request_mix",
        [
            "HTTP 실험이 한 가지 본문 대신 보낼 요청. 요청마다 메서드, 경로, 헤더, 본문, 가중치, 올바른 응답을 적은 파일입니다",
            "HTTP 实验发送的请求，取代单一内容：该文件写明每个请求的方法、路径、头部、正文、权重和正确响应",
        ],
    ),
    (
        "arm_pid",
        [
            "이미 실행 중인 서버에서 CPU를 측정할 프로세스. 그 아래 프로세스도 포함합니다 [기본값: 그 포트에서 수신하는 프로세스]",
            "已在运行的服务器：计入其 CPU 的进程，包括其下所有进程 [默认：在该端口监听的进程]",
        ],
    ),
    (
        "arm_cgroup",
        [
            "프로세스 대신 CPU를 측정할 cgroup. 예: /system.slice/nginx.service",
            "改为计入此 cgroup 的 CPU，例如 /system.slice/nginx.service",
        ],
    ),
    (
        "arm_env",
        [
            "서버의 환경 변수. 변수마다 반복해 쓰며, 값에 {port}를 쓸 수 있습니다",
            "服务器的环境变量，每个变量写一次；值中可用 {port}",
        ],
    ),
    ("arm_dir", ["서버를 시작할 폴더", "启动服务器的文件夹"]),
    (
        "arm_setup",
        [
            "서버를 시작하기 전에 매번 실행할 명령. 이 명령이 끝난 뒤에 시작합니다",
            "每次启动服务器之前运行到结束的命令",
        ],
    ),
    (
        "arm_cleanup",
        [
            "서버가 끝난 뒤에 매번 실행할 명령. 어떻게 끝났든 실행합니다",
            "每次服务器结束之后运行的命令，无论以何种方式结束",
        ],
    ),
    (
        "arm_setup_timeout",
        [
            "두 명령이 각각 걸릴 수 있는 최대 시간, 100ms~10min [기본값: 30s]",
            "这两个命令各自的最长时间，100ms 至 10min [默认：30s]",
        ],
    ),
    (
        "arm_ready",
        [
            "서버가 준비되었는지 확인하는 방법: port(연결을 받음), line:TEXT(그 글이 들어 있는 줄을 출력함) 또는 command:COMMAND(상태 0으로 끝남) [기본값: port]",
            "如何得知服务器已就绪：port（接受连接）、line:TEXT（输出含该文字的一行）或 command:COMMAND（以状态 0 结束）[默认：port]",
        ],
    ),
    (
        "arm_ready_timeout",
        [
            "준비될 때까지 기다릴 최대 시간, 100ms~10min [기본값: 10s]",
            "等待就绪的最长时间，100ms 至 10min [默认：10s]",
        ],
    ),
    (
        "kernels",
        [
            "이 오래된 커널의 기능만 쓰는 io_uring을 각각 비교 대상으로 추가합니다. 예: 5.19,6.1(이 커널의 기능을 가림). 기능이 적은 커널은 epoll도 함께 추가합니다",
            "增加只用这些旧内核功能的 io_uring，各为一个方案，例如 5.19,6.1（在本内核上屏蔽功能）；对功能较少的内核，也加入 epoll",
        ],
    ),
    (
        "only_arms",
        ["--arm으로 지정한 대상만 비교합니다. 첫째가 기준입니다", "只比较用 --arm 给出的方案；第一个为基线"],
    ),
    (
        "warmup",
        [
            "시간을 재기 전에 모든 대상에 이 시간만큼 부하를 줍니다. 최대 1min이며 파일의 `warmup`과 같습니다(스토리지 제외). 시작 직후에 느린 서버에 씁니다",
            "计时之前先对每个方案施加这么久的负载，最长 1min，与文件中的 `warmup` 相同（存储实验除外）；用于刚启动时较慢的服务器",
        ],
    ),
    (
        "rounds",
        [
            "가설마다의 라운드 수(전체 시행이면 블록 수), 2~1000 [기본값: 실험에 적힌 값]",
            "每项结论的轮数（完整试验时为区组数），2 到 1000 [默认：实验所写的值]",
        ],
    ),
    (
        "time",
        [
            "첫 라운드를 시작하고 이 시간이 지나면 새 라운드나 블록을 시작하지 않습니다. 예: 5min [기본값: 실험에 적힌 값, 또는 라운드에 필요한 시간]",
            "第一轮开始后超过此时长便不再开始新的轮次或区组，例如 5min [默认：实验所写的值，或其轮次所需的时间]",
        ],
    ),
    (
        "baseline",
        [
            "이전 빌드의 weir. 드라이버마다 그 빌드의 같은 대상을 함께 실행해 기준으로 삼습니다",
            "较旧的 weir 构建：每个驱动都同时运行该构建的同一方案，作为其基线",
        ],
    ),
    (
        "placebo",
        [
            "기준의 소스를 한 번 더 빌드한 것. 코드 배치만으로 생기는 차이를 보여 주는 비교 대상이 됩니다",
            "将基线的源码再构建一次：作为另一个方案，显示仅由代码布局造成的差异",
        ],
    ),
    (
        "fail_if",
        [
            "임계값: \"[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]\". 예: \"cpu > 3%\", \"p99 > 2ms\". 신뢰구간 전체가 넘으면 종료 \
            코드 10, 신뢰구간이 경계를 포함하면 11, 모두 충족하면 0",
            "阈值：\"[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]\"，例如 \"cpu > 3%\"、\"p99 > 2ms\"。整个置信区间超出时退出码为 \
            10，置信区间包含界限时为 11，全部满足时为 0",
        ],
    ),
    (
        "inconclusive_passes",
        [
            "임계값이 있을 때, 신뢰구간이 경계를 포함해도 실패로 처리하지 않습니다",
            "设有阈值时，置信区间包含界限不算失败",
        ],
    ),
    (
        "storage",
        [
            "survey의 스토리지 부분: 디스크 하나에서 모든 엔진, 10분 이내",
            "survey 的存储部分：在一块磁盘上测试每种引擎，不到十分钟",
        ],
    ),
    (
        "file",
        [
            "스토리지 실험의 데이터 파일. 이미 있어야 하며, 쓰기를 하는 실험(survey)은 내용을 덮어씁니다 [기본값: 결과 옆의 storage.dat, 한 번만 만듦]",
            "存储实验的数据文件，必须已存在；会写入的实验（survey）将覆盖其内容 [默认：结果旁的 storage.dat，只生成一次]",
        ],
    ),
    (
        "server_host",
        [
            "서버를 실행할 다른 호스트(ssh에 쓰는 형식). ssh의 설정, 키, known_hosts를 그대로 쓰며 weir를 한 번 복사합니다. 부하는 이 머신에서 줍니다",
            "运行服务器的另一台主机（ssh 所用的写法）：沿用 ssh 的配置、密钥与 known_hosts，weir 只复制一次；负载由本机产生",
        ],
    ),
    (
        "rsh",
        [
            "서버 호스트에 접속할 때 ssh 대신 쓸 명령. 예: \"ip netns exec b\", \"docker exec -i c\", \"srun -w b\". 뒤에 붙는 명령을 그 \
            호스트에서 실행합니다. --hosts와 함께 쓰면 각 호스트에 접속하며, {host}는 호스트 이름이 됩니다",
            "代替 ssh 进入服务器主机的命令，例如 \"ip netns exec b\"、\"docker exec -i c\"、\"srun -w b\"：在那里执行其后的命令。与 --hosts \
            同用时用于进入每台主机，其中的 {host} 为主机名",
        ],
    ),
    (
        "server_address",
        [
            "그 호스트에서 서버가 수신할 주소 [기본값: ssh가 도착한 주소 또는 하나뿐인 주소]",
            "服务器在该主机上监听的地址 [默认：ssh 到达的地址，或唯一的地址]",
        ],
    ),
    (
        "hosts",
        [
            "이 파일의 각 머신에서 서버와 부하를 포함한 실험 전체를 실행하고 결과를 종합합니다. 한 줄에 하나씩 [user@]HOST를 씁니다. 종료 코드는 종합한 주 비교를 따르며, 결과가 없는 호스트가 \
            있으면 13입니다",
            "在该文件列出的每台机器上各自运行整个实验（服务器与负载），并合并结果；每行一个 [user@]HOST。退出码取决于合并后的主要比较，有主机没有结果时为 13",
        ],
    ),
    (
        "at_once",
        [
            "--hosts와 함께: 동시에 실험을 실행할 호스트 수, 1~256 [기본값: 16]",
            "与 --hosts 同用：同时运行实验的主机数，1 至 256 [默认：16]",
        ],
    ),
    (
        "print",
        [
            "실험 파일을 출력하고, 실행하지는 않습니다. 직접 실험을 만들 때 출발점으로 씁니다",
            "输出实验文件，可据此编写自己的实验，不运行",
        ],
    ),
    (
        "dry_run",
        [
            "이 머신에서 실행할 내용(비교 대상, 조건, 라운드나 블록, 걸리는 시간)을 출력하고, 실행하지는 않습니다",
            "输出在本机上的计划（方案、条件、轮次或区组、所需时间），不运行",
        ],
    ),
    (
        "earlier",
        [
            "저장된 결과 폴더, 또는 그런 폴더를 모아 둔 폴더. 그 라운드를 바탕으로 이 일정으로 찾을 수 있는 차이를 실행 전과 --dry-run에서 알려 줍니다",
            "已保存的结果文件夹，或存放此类文件夹的文件夹：按其轮次估计本计划能检出的差异，在运行前和 --dry-run 中给出",
        ],
    ),
    (
        "observed",
        [
            "사용자 서버의 관찰 기록(weir observe -p PID --trace --record FILE). 히트맵의 안내가 I/O 모델의 선택이 그 서버의 CPU 중 얼마에 영향을 주는지 \
            알려 줍니다",
            "您的服务器的观测记录（weir observe -p PID --trace --record FILE）：热力图的建议会说明 I/O 模型的选择能影响其 CPU 的多大部分",
        ],
    ),
    (
        "repeat",
        [
            "실험을 N번 실행하고 종합합니다. 매번 새 폴더 NAME-TIME에 저장합니다. 종합한 값, 실행 간 편차, 다음 실행의 예측 범위를 표시합니다. 종료 코드는 종합한 주 비교를 따릅니다",
            "将实验运行 N 次并合并，每次存入新文件夹 NAME-TIME：合并值、运行间偏差、下一次运行的预测范围。退出码取决于合并后的主要比较",
        ],
    ),
    (
        "every",
        [
            "--repeat에서 실행을 시작하는 간격. 예: 10min. 실행이 더 오래 걸리면 바로 다음 실행을 시작합니다 [기본값: 연달아 실행]",
            "与 --repeat 一起使用：两次开始的间隔，例如 10min；运行更久时立即开始下一次 [默认：连续运行]",
        ],
    ),
    (
        "out",
        [
            "결과 폴더. --repeat이나 --hosts에서는 모든 실행의 폴더를 넣을 폴더 [기본값: weir-results/NAME-TIME]",
            "结果文件夹；与 --repeat 或 --hosts 一起时为存放各次运行的文件夹 [默认：weir-results/NAME-TIME]",
        ],
    ),
    ("resume", ["이 폴더의 실험을 계속합니다", "继续此文件夹中的实验"]),
    (
        "seed",
        [
            "모든 무작위 선택의 시드 [기본값: 시계에서 얻으며, 저장하고 출력함]",
            "所有随机选择的种子 [默认：取自时钟，会保存并显示]",
        ],
    ),
    (
        "lang",
        [
            "보고서의 언어: en, ko, zh [기본값: 로캘의 언어]",
            "报告的语言：en、ko 或 zh [默认：区域设置的语言]",
        ],
    ),
    (
        "json",
        ["표 대신, 판정한 비교를 JSON으로 표준 출력에 씁니다", "以 JSON 将判定的比较写到标准输出，代替表格"],
    ),
    (
        "long",
        [
            "한 화면의 답 대신 보고서 전체(모든 조건, 참고, 점검)를 출력합니다",
            "输出完整报告（全部条件、说明与检查），而不是一屏的结论",
        ],
    ),
    ("quiet", ["진행 상황을 표시하지 않습니다", "不显示进度"]),
    ("help", ["도움말을 출력합니다", "显示帮助"]),
    ("version", ["버전을 출력합니다", "显示版本"]),
    (
        "commit",
        [
            "측정하는 커밋. 결과와 함께 저장합니다. SHA-dirty는 파일이 커밋과 다르다는 뜻입니다 [기본값: GITHUB_SHA나 CI_COMMIT_SHA, 없으면 폴더의 git 저장소]",
            "所测的提交，与结果一同保存；SHA-dirty 表示文件与该提交不同 [默认：GITHUB_SHA 或 CI_COMMIT_SHA，否则取文件夹所在的 git 仓库]",
        ],
    ),
    (
        "branch",
        [
            "측정하는 브랜치. 결과와 함께 저장합니다 [기본값: GITHUB_HEAD_REF, GITHUB_REF_NAME, CI_COMMIT_BRANCH, CI_MERGE_REQUEST_SOURCE_BRANCH_NAME, \
             없으면 폴더의 git 저장소]",
            "所测的分支，与结果一同保存 [默认：GITHUB_HEAD_REF、GITHUB_REF_NAME、CI_COMMIT_BRANCH 或 \
            CI_MERGE_REQUEST_SOURCE_BRANCH_NAME，否则取文件夹所在的 git 仓库]",
        ],
    ),
    (
        "label",
        [
            "결과와 함께 저장할 라벨. weir history에서 라벨로 고를 수 있습니다. 여러 번 쓸 수 있습니다",
            "与结果一同保存的标签，weir history 可按它选择；可重复",
        ],
    ),
    ("note", ["결과와 함께 저장할 메모", "与结果一同保存的备注"]),
];

/// The end of the first screen.
const AFTER: [&str; 2] = [
    "\
시작하기:
  weir study quick                  epoll과 io_uring 비교, 90초
  weir compare 'old x' 'new x'      두 프로그램의 CPU 시간 비교
  weir doctor                       이 머신에서 가능한 것과 제한을 푸는 방법
  weir serve echo --driver epoll    서버 실행. 다른 터미널에서
  weir load echo -c 100             부하를 주고 모든 바이트를 검사
  weir top                          서버가 하는 일을 스레드별로 보기
  weir dashboard                    모든 실험을 브라우저로 보기(3000번 포트)
  weir observe -p PID --trace       프로세스가 시간을 쓰는 곳을 호출별로 보기
  weir help serve gateway           명령 하나의 도움말

종료 코드: 0 완료, 1 실행 중 실패, 2 잘못된 명령줄이나 실험 파일, 11 판정 보류, 12 비교할 수
없거나 노이즈가 큼, 13 이 환경에서 실행할 수 없음, 130 중단(끝난 블록은 남음), 10 임계값을
충족하지 못함(--max-errors, --fail-if), 14 비교할 기준이 없음, 15 종료 요청에 서버가 멈춤",
    "\
从这里开始：
  weir study quick                  比较 epoll 与 io_uring，90 秒
  weir compare 'old x' 'new x'      按 CPU 时间比较您的两个程序
  weir doctor                       本机能运行什么，如何解除限制
  weir serve echo --driver epoll    运行服务器；在另一个终端
  weir load echo -c 100             施加负载并检查每个字节
  weir top                          按线程查看服务器在做什么
  weir dashboard                    在浏览器中查看所有实验（端口 3000）
  weir observe -p PID --trace       逐个调用查看进程的时间去向
  weir help serve gateway           某个命令的帮助

退出码：0 完成，1 运行中失败，2 命令行或实验文件有误，11 无法判定，12 不可比较或噪声过大，
13 此环境无法运行，130 被中断（已完成的区组会保留），10 未满足阈值（--max-errors、--fail-if），
14 没有可比较的基线，15 服务器未响应结束请求",
];

fn found(rows: &[Row], name: &str, language: Language) -> Option<&'static str> {
    let (_, [korean, chinese]) = rows.iter().find(|(own, _)| *own == name)?;
    match language {
        Language::English => None,
        Language::Korean => Some(korean),
        Language::Chinese => Some(chinese),
    }
}

/// The purpose of a command, by its path: `serve http`.
pub(super) fn command(path: &str, language: Language) -> Option<&'static str> {
    // Every command with subcommands has this one too.
    let path = if path.ends_with(" help") { "help" } else { path };
    found(&COMMANDS, path, language)
}

/// The description of a flag. Flags of every command are known everywhere, and the others only for `weir study`, `weir
/// compare`, `weir history` and `weir journal`.
pub(super) fn argument(path: &str, id: &str, language: Language) -> Option<&'static str> {
    match path {
        "compare" => return found(&COMPARE, id, language),
        "history" => return found(&HISTORY, id, language),
        path if path.starts_with("journal ") && !["help", "lang"].contains(&id) => {
            return found(&JOURNAL, id, language);
        }
        _ => {}
    }
    let is_known = path == "study" || ["help", "version", "lang"].contains(&id);
    found(&STUDY, id, language).filter(|_| is_known)
}

/// The heading of a group of flags.
pub(super) fn heading(english: &str, language: Language) -> &str {
    match english {
        "Experiments" => language.choose(["Experiments", "실험", "实验"]),
        "Servers" => language.choose(["Servers", "서버", "服务器"]),
        "Own servers" => language.choose(["Own servers", "직접 준비한 서버", "自备服务器"]),
        other => other,
    }
}

/// The end of the help of a command.
pub(super) fn after(path: &str, language: Language) -> Option<&'static str> {
    match language {
        Language::Korean if path.is_empty() => Some(AFTER[0]),
        Language::Chinese if path.is_empty() => Some(AFTER[1]),
        Language::Korean if path == "compare" => Some(AFTER_COMPARE[0]),
        Language::Chinese if path == "compare" => Some(AFTER_COMPARE[1]),
        Language::Korean if path == "ctl" => Some(AFTER_CTL[0]),
        Language::Chinese if path == "ctl" => Some(AFTER_CTL[1]),
        Language::Korean if path == "journal print" => Some(AFTER_PRINT[0]),
        Language::Chinese if path == "journal print" => Some(AFTER_PRINT[1]),
        Language::Korean if path == "journal export" => Some(AFTER_EXPORT[0]),
        Language::Chinese if path == "journal export" => Some(AFTER_EXPORT[1]),
        _ => None,
    }
}

/// Texts of commands that do not exist.
#[cfg(test)]
pub(super) fn unknown(paths: &[String]) -> Vec<&'static str> {
    COMMANDS.iter().map(|(path, _)| *path).filter(|path| paths.iter().all(|own| own != path)).collect()
}
