package llm

import (
	"fmt"
	"strings"
)

// nameOf and parseName serve the text forms of the package's enumerations:
// the index of a name in its table is the value.
func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("invalid(%d)", v)
}

func parseName[T ~uint8](kind string, names []string, text string) (T, error) {
	for i, n := range names {
		if n == text {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q (one of %s)", kind, text, strings.Join(names, ", "))
}
