package top

// Key is a pressed key: a character, or one of the constants.
type Key rune

// Keys without a character of their own.
const (
	Interrupt Key = 3 // ctrl-c, if the terminal does not send a signal
	Enter     Key = '\r'
	Escape    Key = 0x1b
	Up        Key = -1
	Down      Key = -2
)

// Keys parses the input of a terminal. The rest may be the beginning of a key; if nothing follows
// soon, it is the key [Escape].
func Keys(sent []byte) (keys []Key, rest []byte) {
	for len(sent) > 0 {
		switch {
		case sent[0] == '\n':
			keys, sent = append(keys, Enter), sent[1:]
		case Key(sent[0]) != Escape:
			keys, sent = append(keys, Key(sent[0])), sent[1:]
		case len(sent) == 1:
			return keys, sent
		case sent[1] != '[' && sent[1] != 'O':
			keys, sent = append(keys, Escape), sent[1:]
		default:
			end := 2
			for end < len(sent) && (sent[end] < '@' || sent[end] > '~') {
				end++
			}
			if end == len(sent) {
				return keys, sent
			}
			switch sent[end] {
			case 'A':
				keys = append(keys, Up)
			case 'B':
				keys = append(keys, Down)
			}
			sent = sent[end+1:]
		}
	}
	return keys, nil
}
