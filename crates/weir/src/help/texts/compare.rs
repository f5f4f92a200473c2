//! Texts of `weir compare` and `weir history`.

use super::Row;

/// The end of the help of `weir compare`.
pub(super) const AFTER_COMPARE: [&str; 2] = [
    "\
예:
  weir compare 'old/sort big.txt' 'new/sort big.txt'
  weir compare -L build old,new 'build/{build}/app --check data'
  weir compare 'old/app' 'new/app' --fail-if 'cpu ratio > 1.03' \\
    --export-markdown comment.md
  weir compare --serve 'old/app --port {port}' --serve 'new/app --port {port}' \\
    --load 'wrk -t1 -c8 -d1s http://127.0.0.1:{port}/'

실행은 무작위 순서로 번갈아 하고, 쌍마다 첫 번째 명령은 두 번 실행합니다. 판정은 CPU 시간(user와
system)에 대한 것입니다.

종료 코드:
  0    판정함. --fail-if를 쓰면 모든 임계값을 충족함
  1    실행 중 실패(예: --prepare의 명령)
  2    명령줄이 잘못되어 비교하지 않음
  10   신뢰구간 전체가 임계값을 넘음
  11   판정 보류: 신뢰구간으로는 판정할 수 없음
  12   비교할 수 없음: 출력이 다르거나 명령이 실패함
  13   시작할 수 없는 명령이나 준비되지 않은 서버가 있음
  14   기준을 시작할 수 없거나 기준이 실패함
  130  중단됨. 측정한 결과는 내보낸 파일에 있음",
    "\
示例：
  weir compare 'old/sort big.txt' 'new/sort big.txt'
  weir compare -L build old,new 'build/{build}/app --check data'
  weir compare 'old/app' 'new/app' --fail-if 'cpu ratio > 1.03' \\
    --export-markdown comment.md
  weir compare --serve 'old/app --port {port}' --serve 'new/app --port {port}' \\
    --load 'wrk -t1 -c8 -d1s http://127.0.0.1:{port}/'

各次运行按随机顺序轮流进行，每对中第一个命令运行两次。判定针对 CPU 时间（user 与 system）。

退出码：
  0    有判定；使用 --fail-if 时全部阈值满足
  1    有操作失败，例如 --prepare 的命令
  2    命令行有误，未作比较
  10   整个置信区间超出阈值
  11   无法判定：置信区间不足以判定
  12   不可比较：输出不同，或有命令失败
  13   有命令无法启动，或有服务器未就绪
  14   基线无法启动，或基线失败
  130  被中断；已测量的结果在导出文件中",
];

/// Descriptions of the flags of `weir compare`.
pub(super) const COMPARE: [Row; 47] = [
    (
        "commands",
        [
            "끝나는 명령들. 첫 번째가 기준입니다. 명령마다 따옴표로 감싸 한 인자로 쓰십시오. 명령이 하나면 --parameter-list나 --parameter-scan으로 여러 개를 만듭니다",
            "会自行结束的命令；第一个是基线。请用引号把每个命令写成一个参数。只有一个命令时，由 --parameter-list 或 --parameter-scan 展开成多个",
        ],
    ),
    (
        "serve",
        [
            "끝나는 명령 대신 비교할 서버. {port}에는 weir가 고른 포트, {dir}에는 새 폴더가 들어갑니다. 첫 번째가 기준이며, 기준은 두 개를 시작합니다. 여러 번 쓸 수 있습니다",
            "代替命令进行比较的服务器；{port} 是 weir 选的端口，{dir} 是新文件夹；第一个是基线，会启动两个；可重复",
        ],
    ),
    (
        "load",
        [
            "서버에 부하를 주는, 스스로 끝나는 명령. {port}와 {dir}에는 부하를 받는 서버의 값이, {out}에는 결과 파일이 들어갑니다. 지원하는 도구: ab, ghz, hey, k6, \
            memtier_benchmark, oha, pgbench, redis-benchmark, wrk, weir load --json",
            "服务器的负载，即一个会自行结束的命令；{port} 和 {dir} 是受负载的服务器的值，{out} \
            是其结果文件。支持的工具：ab、ghz、hey、k6、memtier_benchmark、oha、pgbench、redis-benchmark、wrk 以及 weir load --json",
        ],
    ),
    (
        "count_regex",
        [
            "지원하지 않는 도구에서 처리한 수를 읽는 정규식. 숫자를 그룹 하나로 묶습니다",
            "从其他工具的输出读取完成数量的正则表达式，用一个组括住数字",
        ],
    ),
    (
        "count_json",
        [
            "처리한 수를 부하가 출력한 JSON에서 읽는 포인터. 예: /totals/count",
            "从负载输出的 JSON 读取完成数量的指针，例如 /totals/count",
        ],
    ),
    (
        "between",
        [
            "부하를 실행하기 전에 매번 실행하는 명령(측정하지 않음). {port}와 {dir}를 쓸 수 있습니다",
            "每次负载运行之前的命令，不作测量；可用 {port} 和 {dir}",
        ],
    ),
    (
        "ready",
        [
            "이 명령이 상태 0으로 끝나면 서버가 준비된 것으로 봅니다. 그때까지 반복해 실행합니다 [기본값: 포트가 연결을 받으면 준비된 것으로 봄]",
            "此命令以状态 0 结束时服务器就绪；在此之前反复运行 [默认：端口接受连接即就绪]",
        ],
    ),
    (
        "ready_line",
        ["서버가 이 글이 들어 있는 줄을 출력하면 준비된 것으로 봅니다", "服务器输出含此文字的行时就绪"],
    ),
    (
        "ready_timeout",
        ["서버가 준비될 때까지 기다릴 최대 시간 [기본값: 30s]", "等待服务器就绪的最长时间 [默认：30s]"],
    ),
    (
        "settle",
        [
            "부하가 끝난 뒤 서버의 CPU를 읽을 때까지 기다리는 시간. 서버가 나중에 처리하는 일까지 포함하기 위한 것입니다 [기본값: 100ms]",
            "从负载结束到读取服务器 CPU 的等待时间，以便计入服务器稍后才做的工作 [默认：100ms]",
        ],
    ),
    (
        "pairs_per_start",
        [
            "이만큼의 쌍마다 모든 서버를 새로 시작합니다. 시작할 때마다 달라지는 값이 신뢰구간에 반영됩니다 [기본값: 3]",
            "每运行多少对之后重新启动所有服务器，使置信区间包含各次启动之间的差异 [默认：3]",
        ],
    ),
    (
        "budget",
        [
            "한 비교에 쓸 시간(60s, 5min, 500ms, 숫자만 쓰면 초). 예비 실행으로 쌍의 수를 정합니다 [기본값: 60s, --serve이면 120s]",
            "一次比较中各对运行的时间（60s、5min、500ms；只写数字表示秒）；对数由试运行决定 [默认：60s，用 --serve 时 120s]",
        ],
    ),
    (
        "runs",
        [
            "쌍의 수, 6 이상. 예비 실행과 --budget으로 정하는 수 대신 씁니다. 한 쌍에서는 명령마다 한 번, 첫 번째 명령은 한 번 더 실행합니다",
            "对数，至少 6；取代由试运行和 --budget 决定的数目。一对是每个命令各运行一次，第一个命令再运行一次",
        ],
    ),
    (
        "min_runs",
        [
            "최소 쌍의 수, 6 이상. --budget을 넘어도 실행합니다 [기본값: 6에서 10 사이, 시간이 되는 만큼]",
            "最少对数，至少 6；即使超过 --budget 也会运行 [默认：6 到 10 之间，视时间而定]",
        ],
    ),
    (
        "warmup",
        [
            "측정하기 전에 실행하는 예열 라운드. 서버는 시작할 때마다 실행합니다 [기본값: 0, --serve이면 1]",
            "测量之前的预热轮次；服务器则在每次启动之后运行 [默认：0，用 --serve 时 1]",
        ],
    ),
    (
        "limit",
        [
            "실행 하나의 최대 시간(60s, 5min, 500ms, 숫자만 쓰면 초). 넘으면 시작한 프로세스까지 모두 종료합니다",
            "一次运行的最长时间（60s、5min、500ms；只写数字表示秒）；超过则连同其启动的全部进程终止",
        ],
    ),
    (
        "prepare",
        [
            "실행하기 전에 매번 실행하는 명령(측정하지 않음). 모든 명령에 하나, 또는 명령마다 하나",
            "每次运行之前的命令，不作测量：全部共用一个，或每个命令一个",
        ],
    ),
    ("conclude", ["실행한 뒤에 매번 실행하는 명령(측정하지 않음)", "每次运行之后的命令，不作测量"]),
    (
        "setup",
        [
            "명령마다 첫 실행 전에 실행하는 명령. 서버는 시작하기 전에 매번 실행합니다",
            "每个命令首次运行之前的命令；服务器则在每次启动之前",
        ],
    ),
    (
        "cleanup",
        [
            "명령마다 마지막 실행 뒤에 실행하는 명령. 서버는 끝난 뒤에 매번 실행합니다",
            "每个命令最后一次运行之后的命令；服务器则在每次结束之后",
        ],
    ),
    (
        "parameter_list",
        [
            "명령에 {VAR}로 쓴 매개변수의 값. 명령이 하나면 값마다 명령이 되고, 여러 개면 값마다 비교가 됩니다",
            "命令中写作 {VAR} 的参数的取值：只有一个命令时每个值成为一个命令，有多个时每个值成为一次比较",
        ],
    ),
    ("parameter_scan", ["매개변수의 값을 MIN부터 MAX까지의 숫자로 지정합니다", "参数取从 MIN 到 MAX 的数"]),
    ("parameter_step_size", ["--parameter-scan의 간격", "--parameter-scan 的步长"]),
    ("name", ["명령의 이름. 명령 순서대로 씁니다", "命令的名称，按命令的顺序"]),
    (
        "shell",
        [
            "명령을 실행할 셸(sh, bash 등). none이면 셸 없이 실행합니다",
            "运行命令的 shell，例如 sh 或 bash；none 表示不用 shell",
        ],
    ),
    ("no_shell", ["셸 없음(기본값)", "不用 shell，这是默认值"]),
    ("input", ["실행마다 표준 입력으로 줄 파일 [기본값: 비어 있음]", "每次运行的标准输入文件 [默认：空]"]),
    (
        "output",
        [
            "출력 처리: pipe(비교하고 저장하지 않음), null, inherit, 또는 파일",
            "输出的处理：pipe（作比较，不保留）、null、inherit 或一个文件",
        ],
    ),
    ("show_output", ["--output inherit과 같습니다", "等同于 --output inherit"]),
    ("ignore_failure", ["실패한 실행도 비교에 넣습니다", "失败的运行也参与比较"]),
    (
        "env",
        [
            "모든 명령의 모든 실행에 설정할 환경 변수. 명령 하나에만 설정하려면 env 프로그램을 쓰십시오: 'env NAME=VALUE COMMAND'. 여러 번 쓸 수 있습니다",
            "所有命令每次运行的环境变量；只为一个命令设置时请用 env 程序：'env NAME=VALUE COMMAND'；可重复",
        ],
    ),
    ("dir", ["명령을 실행할 폴더", "运行命令的文件夹"]),
    (
        "placebo",
        [
            "기준과 같지만 코드의 메모리 배치만 다른 빌드. 예: 링크 순서만 다른 빌드. 차이가 이 빌드들의 차이보다 커야 판정합니다. 여러 번 쓸 수 있습니다",
            "与基线相同、只是代码在内存中的位置不同的构建，例如只改变链接顺序；差异大于它们才作判定；可重复",
        ],
    ),
    (
        "fail_if",
        [
            "임계값 \"[COMMAND] METRIC [ratio] > NUMBER[UNIT]\". 예: \"cpu ratio > 1.03\", \"memory > 100MiB\". 신뢰구간 전체가 \
            넘으면 종료 코드 10, 신뢰구간이 경계를 포함하면 11, 모두 충족하면 0. 지표: cpu, user, system, time, memory, minor-faults, \
            major-faults, voluntary-switches, involuntary-switches, bytes-read, bytes-written, instructions, 서버의 \
            throughput",
            "阈值：\"[COMMAND] METRIC [ratio] > NUMBER[UNIT]\"，例如 \"cpu ratio > 1.03\"、\"memory > 100MiB\"。整个置信区间超出时退出码为 \
            10，置信区间包含界限时为 11，全部满足时为 \
            0。指标：cpu、user、system、time、memory、minor-faults、major-faults、voluntary-switches、involuntary-switches、bytes-read、bytes-written、instructions，以及服务器的 \
            throughput",
        ],
    ),
    (
        "inconclusive_passes",
        [
            "임계값이 있을 때, 신뢰구간이 경계를 포함해도 실패로 처리하지 않습니다",
            "设有阈值时，置信区间包含界限不算失败",
        ],
    ),
    ("export_json", ["모든 결과를 JSON으로 씁니다. -는 표준 출력", "将全部结果写成 JSON；- 表示标准输出"]),
    (
        "export_markdown",
        [
            "최대 15줄의 요약을 Markdown으로 씁니다. -는 표준 출력",
            "写出最多 15 行的 Markdown 摘要；- 表示标准输出",
        ],
    ),
    ("export_csv", ["모든 실행을 CSV로 씁니다. -는 표준 출력", "将每次运行写成 CSV；- 表示标准输出"]),
    (
        "out",
        [
            "모든 결과를 이 폴더에 파일 하나로 저장합니다. 저장한 결과는 weir history와 weir dashboard에서 볼 수 있습니다. 폴더가 없으면 만듭니다",
            "将全部结果保存为此文件夹中的一个文件，供 weir history 与 weir dashboard 查看；文件夹会自动创建",
        ],
    ),
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
    (
        "schema",
        [
            "--export-json 문서의 JSON 스키마를 출력하고, 실행하지는 않습니다",
            "输出 --export-json 文档的 JSON Schema，不运行任何命令",
        ],
    ),
    (
        "seed",
        [
            "모든 무작위 순서의 시드 [기본값: 시계에서 얻으며 기록하고 출력합니다]",
            "所有随机顺序的种子 [默认：取自时钟，会记录并显示]",
        ],
    ),
    ("lang", ["언어: en, ko, zh [기본값: 로캘의 언어]", "语言：en、ko 或 zh [默认：区域设置的语言]"]),
    ("help", ["도움말을 출력합니다", "显示帮助"]),
];

/// The description of a flag of `weir history`.
pub(super) const HISTORY: [Row; 9] = [
    (
        "folders",
        [
            "실험 결과와 weir compare --out으로 저장한 비교가 있는 폴더, 또는 그중 하나 [기본값: weir-results]",
            "存有实验结果以及 weir compare --out 所保存比较的文件夹，或其中之一 [默认：weir-results]",
        ],
    ),
    ("study", ["이 실험만, 또는 이름이 이것인 명령이 있는 비교만", "仅此实验，或含有此名称命令的比较"]),
    ("branch", ["이 브랜치의 실행만", "仅此分支的运行"]),
    ("label", ["이 라벨이 있는 실행만. 여러 번 쓸 수 있습니다", "仅带有此标签的运行；可重复"]),
    (
        "metric",
        [
            "실행마다 표시할 지표. --fail-if에 쓰는 이름과 같습니다 [기본값: 실험의 주 비교, 명령의 CPU 시간]",
            "每次运行显示的指标，名称与 --fail-if 相同 [默认：实验的主要比较，命令的 CPU 时间]",
        ],
    ),
    ("limit", ["계열마다 표시할 최근 실행의 수", "每个序列显示的最近运行次数"]),
    ("format", ["출력 형식", "输出格式"]),
    ("lang", ["언어: en, ko, zh [기본값: 로캘의 언어]", "语言：en、ko 或 zh [默认：区域设置的语言]"]),
    ("help", ["도움말을 출력합니다", "显示帮助"]),
];
