module weir/peers/go

go 1.18
