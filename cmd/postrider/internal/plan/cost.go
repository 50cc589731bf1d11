package plan

// Cost is the cost of a billion messages. Prices are in the currency of the inputs, and 0 without a
// price.
type Cost struct {
	ServerHours  float64 `json:"server_cpu_hours"`         // with the producers' own transactions
	MessageHours float64 `json:"message_server_cpu_hours"` // of them, what messages and relays have added
	RelayHours   float64 `json:"relay_cpu_hours"`
	WAL          float64 `json:"wal_gb"`  // of messages and relays
	Disk         float64 `json:"disk_gb"` // while they are kept

	CPUPrice  float64 `json:"cpu_price,omitempty"` // of what messages and relays have added
	WALPrice  float64 `json:"wal_price,omitempty"`
	DiskPrice float64 `json:"disk_price,omitempty"` // for as long as they are kept
	Price     float64 `json:"price,omitempty"`
}

const (
	billion = 1e9
	gb      = 1e9
	month   = 30 * 86400 // seconds
)

// price computes the cost of a billion messages at the plan's rate.
func (m *Model) price(p *Plan) {
	in := &p.Inputs
	hours := func(cores float64) float64 { return cores / in.Rate * billion / 3600 }
	c := Cost{ServerHours: hours(p.ServerCores), MessageHours: hours(p.MessageCores), RelayHours: hours(p.RelayCores)}
	c.WAL = max(0, p.WAL/in.Rate-m.businessWAL) * billion / gb
	c.Disk = p.DiskMessage * billion / gb
	c.CPUPrice = (c.MessageHours + c.RelayHours) * in.CPUHourPrice
	c.WALPrice = c.WAL * in.WALPrice
	c.DiskPrice = c.Disk * in.DiskPrice * (slots - 1) * p.Period.Seconds() / month
	c.Price = c.CPUPrice + c.WALPrice + c.DiskPrice
	p.Cost = c
}
