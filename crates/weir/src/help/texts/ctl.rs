//! Texts of `weir ctl`.

/// The end of its help.
pub(super) const AFTER_CTL: [&str; 2] = [
    "\
셸에 소켓을 한 번 정하거나, 명령마다 --socket PATH를 씁니다:
  export WEIR_CONTROL=/var/lib/weir-servers/gateway/gateway.sock

누가 로그인했는지, 어느 거래소가 왜 끊겼는지, 어느 킬 스위치가 켜졌는지 봅니다:
  weir ctl sessions
한 계좌를 정지하고 주문을 취소합니다. 전체에 같은 일을 합니다. 정지를 풉니다:
  weir ctl kill C00001
  weir ctl kill all
  weir ctl kill all --off
한 계좌의 미체결 주문을 보고, 하나 또는 한 종목 전부를 취소합니다:
  weir ctl orders --account C00001
  weir ctl cancel C00001/17
  weir ctl cancel --symbol WEIR
한 계좌의 한도를 바꾸고 되돌립니다. 별도 한도가 없는 계좌에 같은 일을 합니다:
  weir ctl limits --account C00001 shares_max=1000 notional_max=off
  weir ctl limits --account C00001 --reset shares_max
  weir ctl limits shares_max=1000
  weir ctl limits --reset
계좌가 비밀번호를 다시 시도할 수 있게 합니다:
  weir ctl unlock C00001

종료 코드: 0 완료, 1 게이트웨이가 거부했거나 응답하지 않음(이유를 출력합니다), 2 명령줄 오류.",
    "\
在 shell 中设置一次套接字，或在每条命令中写 --socket PATH：
  export WEIR_CONTROL=/var/lib/weir-servers/gateway/gateway.sock

查看谁已登录、哪个交易所断开及其原因、哪个紧急停止已开启：
  weir ctl sessions
停止一个账户并撤销其订单；对全部账户做同样的事；解除：
  weir ctl kill C00001
  weir ctl kill all
  weir ctl kill all --off
查看一个账户的未成交订单，撤销其中一个，或某一代码的全部：
  weir ctl orders --account C00001
  weir ctl cancel C00001/17
  weir ctl cancel --symbol WEIR
更改一个账户的限额，再恢复；对没有单独限额的账户做同样的事：
  weir ctl limits --account C00001 shares_max=1000 notional_max=off
  weir ctl limits --account C00001 --reset shares_max
  weir ctl limits shares_max=1000
  weir ctl limits --reset
让一个账户可以再次尝试密码：
  weir ctl unlock C00001

退出码：0 完成；1 网关拒绝或没有应答（会说明原因）；2 命令行有误。",
];
