//! A line of the simulated network that can go dead silently: from then on packets are dropped, and neither end sees
//! an end, a reset or an error.

use std::{cell::Cell, future::pending, rc::Rc};

use weir_engine::{
    net::{Address, Listener, Stream},
    spawn,
};

/// How often each direction has gone dead.
#[derive(Default)]
struct Cuts {
    there: Cell<u32>,
    back: Cell<u32>,
}

/// Connections to `address` are forwarded to the other end.
#[derive(Clone)]
pub struct Cable {
    pub address: Address,
    cuts: Rc<Cuts>,
}

impl Cable {
    /// Creates a line to an address, inside the simulated runtime.
    pub fn lay(to: Address) -> Self {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("it has one");
        let cuts = Rc::new(Cuts::default());
        let of_each = Rc::clone(&cuts);
        spawn(async move {
            while let Ok(near) = listener.accept().await {
                // A connection to an address without a listener sees an end.
                if let Ok(far) = Stream::connect(&to).await {
                    let (near, far) = (Rc::new(near), Rc::new(far));
                    spawn(carry(Rc::clone(&near), Rc::clone(&far), Rc::clone(&of_each), |cuts| &cuts.there));
                    spawn(carry(far, near, Rc::clone(&of_each), |cuts| &cuts.back));
                }
            }
        });
        Self { address, cuts }
    }

    /// From now on the present connections carry nothing, in either direction. New ones work.
    pub fn cut(&self) {
        self.cuts.there.set(self.cuts.there.get() + 1);
        self.cut_back();
    }

    /// From now on the present connections carry nothing back; bytes in the forward direction still arrive.
    pub fn cut_back(&self) {
        self.cuts.back.set(self.cuts.back.get() + 1);
    }
}

async fn carry(from: Rc<Stream>, to: Rc<Stream>, cuts: Rc<Cuts>, direction: fn(&Cuts) -> &Cell<u32>) {
    let begun = direction(&cuts).get();
    loop {
        let received = from.recv().await;
        if direction(&cuts).get() != begun {
            // Nothing is acknowledged: the sender's own buffer fills, and it receives nothing.
            pending::<()>().await;
        }
        let Ok(Some(bytes)) = received else { break };
        if to.send_slice(&bytes).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    // The end of one side ends the other.
    let _ = to.shutdown().await;
}
