//! A line of the simulated network that can go dead without a word: packets are dropped from then on, and neither end
//! sees an end, a reset or an error.

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

/// What connects to `address` is connected to the other end.
#[derive(Clone)]
pub struct Cable {
    pub address: Address,
    cuts: Rc<Cuts>,
}

impl Cable {
    /// Lays one to an address, inside the simulated runtime.
    pub fn lay(to: Address) -> Self {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("it has one");
        let cuts = Rc::new(Cuts::default());
        let of_each = Rc::clone(&cuts);
        spawn(async move {
            while let Ok(near) = listener.accept().await {
                // Who connects to a place where nobody listens sees an end.
                if let Ok(far) = Stream::connect(&to).await {
                    let (near, far) = (Rc::new(near), Rc::new(far));
                    spawn(carry(Rc::clone(&near), Rc::clone(&far), Rc::clone(&of_each), |cuts| &cuts.there));
                    spawn(carry(far, near, Rc::clone(&of_each), |cuts| &cuts.back));
                }
            }
        });
        Self { address, cuts }
    }

    /// On the connections there are now nothing gets through any more, in either direction. New ones are whole.
    pub fn cut(&self) {
        self.cuts.there.set(self.cuts.there.get() + 1);
        self.cut_back();
    }

    /// On the connections there are now nothing comes back any more; what goes there still arrives.
    pub fn cut_back(&self) {
        self.cuts.back.set(self.cuts.back.get() + 1);
    }
}

async fn carry(from: Rc<Stream>, to: Rc<Stream>, cuts: Rc<Cuts>, direction: fn(&Cuts) -> &Cell<u32>) {
    let begun = direction(&cuts).get();
    loop {
        let received = from.recv().await;
        if direction(&cuts).get() != begun {
            // Nobody acknowledges anything: the sender's own buffer fills, and it hears nothing.
            pending::<()>().await;
        }
        let Ok(Some(bytes)) = received else { break };
        if to.send_slice(&bytes).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    // The end of one side is the end of the other.
    let _ = to.shutdown().await;
}
