package jsonrpc2

// Limits on what a peer can make this process hold. Lengths and counts at
// the limit pass, one more does not.
const (
	// MaxLine is the length in bytes of the longest line read, without its line
	// ending. A longer one is skipped and answered with CodeInvalidRequest.
	MaxLine = 64 << 20

	// MaxID is the length in bytes of the longest request id as written,
	// including the quotes of a string.
	MaxID = 4 << 10

	// MaxOpenRequests is how many requests may wait for their answer at a time,
	// and separately how many notifications may run by Request.Go. Further
	// requests are answered with CodeTooManyOpen; further notifications given to
	// Go are dropped.
	MaxOpenRequests = 1024

	// MaxOpenBytes bounds the sum in bytes of the lines of the open requests,
	// because their parameters stay in memory. A request beyond it is answered
	// with CodeTooManyOpen.
	MaxOpenBytes = 4 * MaxLine

	// MaxQueued is how many bytes may wait for the peer to read them before
	// Notify and Call wait too. Answers wait at twice as much, so that a stream
	// of notifications does not hold up the read loop. A message is admitted
	// whole, so the queue exceeds this by less than its last message.
	MaxQueued = 8 << 20
)

const (
	readBuffer = 64 << 10  // bytes; longer lines are put together outside of it
	maxPooled  = 256 << 10 // bytes; larger encode buffers are left to the collector
	maxSpare   = 1 << 20   // bytes; larger write buffers are left to the collector
)
