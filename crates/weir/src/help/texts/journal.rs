//! Texts of `weir journal`.

use super::Row;

/// The end of the help of `weir journal print`.
pub(super) const AFTER_PRINT: [&str; 2] = [
    "\
예:
  weir journal print journal --account C00001 --order 17
  weir journal print journal --symbol WEIR --kind executed --format csv
  weir journal print journal --operators
  weir journal print journal --since 2026-03-02T09:00 --until 2026-03-02T09:05",
    "\
示例：
  weir journal print journal --account C00001 --order 17
  weir journal print journal --symbol WEIR --kind executed --format csv
  weir journal print journal --operators
  weir journal print journal --since 2026-03-02T09:00 --until 2026-03-02T09:05",
];

/// The end of the help of `weir journal export`.
pub(super) const AFTER_EXPORT: [&str; 2] = [
    "\
예:
  weir journal export journal --pcap day.pcap --account C00001
  weir journal export journal --pcap - | tshark -r - -d tcp.port==7001,soupbintcp",
    "\
示例：
  weir journal export journal --pcap day.pcap --account C00001
  weir journal export journal --pcap - | tshark -r - -d tcp.port==7001,soupbintcp",
];

/// Descriptions of the flags of its tasks.
pub(super) const JOURNAL: [Row; 15] = [
    ("directory", ["저널 폴더", "日志所在的文件夹"]),
    ("account", ["이 계좌의 레코드만", "仅此账户的记录"]),
    (
        "order",
        [
            "고객이 붙인 이 번호의 주문과 그것을 정정한 주문의 레코드만",
            "仅客户以此编号的订单及其替换订单的记录",
        ],
    ),
    ("symbol", ["이 종목 주문의 레코드만", "仅此代码的订单的记录"]),
    (
        "since",
        [
            "이 시각부터의 레코드만(UTC): 2026-03-02, 2026-03-02T09:00:00.5Z, 2026-03-02T18:00+09:00",
            "仅从此时刻起的记录（UTC）：2026-03-02、2026-03-02T09:00:00.5Z、2026-03-02T18:00+09:00",
        ],
    ),
    ("until", ["이 시각 전의 레코드만", "仅此时刻之前的记录"]),
    (
        "kind",
        [
            "이 종류이거나 이 메시지가 든 레코드만. 여러 번 쓸 수 있습니다",
            "仅此种类、或含此消息的记录；可重复",
        ],
    ),
    (
        "operators",
        [
            "운영자가 한 일만: 명령, 킬 스위치, 한도, 기준가, 세션 종료",
            "仅操作员的操作：命令、紧急停止、限额、参考价、结束会话",
        ],
    ),
    ("format", ["출력 형식", "输出格式"]),
    ("out", ["사본을 쓸 폴더. 아직 없어야 합니다", "写入副本的文件夹，必须尚不存在"]),
    (
        "pcap",
        [
            "패킷을 쓸 파일. 아직 없어야 하며, -는 표준 출력입니다",
            "写入数据包的文件，必须尚不存在；- 表示标准输出",
        ],
    ),
    (
        "to",
        ["파일을 옮길 폴더. 이전에 옮긴 파일이 있어도 됩니다", "移入文件的文件夹，可以已有先前移入的文件"],
    ),
    ("dry_run", ["옮길 수 있는 파일을 알려 주기만 하고 옮기지 않습니다", "只说明哪些文件可以移走，不移动"]),
    ("follow", ["중단할 때까지, 쓰이는 레코드를 바로 출력합니다", "持续输出新写入的记录，直到被中断"]),
    ("records", ["출력할 마지막 레코드의 수", "输出的最后记录数"]),
];
