package budget

// The classes of ASCII characters that the estimators tell apart.
const (
	classLower      = 'a'
	classUpper      = 'A'
	classDigit      = '0'
	classUnderscore = '_' // punctuation, but part of a word for policy 1
	classPunct      = '.'
	classSpace      = ' '
	classTab        = 't'
	classLine       = 'n'
	classReturn     = 'r'
	classControl    = 'c'
)

// asciiClass gives the class of an ASCII byte.
const asciiClass = "" +
	"ccccccccctnccrcc" + "cccccccccccccccc" +
	" ..............." + "0000000000......" +
	".AAAAAAAAAAAAAAA" + "AAAAAAAAAAA...._" +
	".aaaaaaaaaaaaaaa" + "aaaaaaaaaaa....c"
