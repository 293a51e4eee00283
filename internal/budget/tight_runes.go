package budget

// Prices of characters outside ASCII, in 1/32 token, measured against 23
// tokenizer families from above.

const (
	runStart      = 11 // a run of such characters, once
	hanOneToken   = 34 // of the characters in hanOne
	hanTwoTokens  = 59 // of the characters in hanTwo
	kanaOneToken  = 16 // of the characters in kanaOne
	hanOther      = 95
	kanaOther     = 64
	boxCommon     = 39  // merges in long runs, unlike any other
	repeatedTwo   = 65  // a character of two bytes, from its third time in a row on
	repeatedThree = 99  // the same of three bytes, and an invalid byte
	repeatedFour  = 129 // the same of four bytes
)

// Han characters that no measured family splits, or splits in more than two;
// kana that none splits.
const (
	hanOne = "一三上不中人代大天子将是生的者"
	hanTwo = "" +
		"丁七万下与专世业东两个串为主了事二于云五井些交京仁今介从他付令以们件任保信修元先光克入全八公六共关兴兵其典内再写" +
		"军出击函分切列则创初删判別利到制前力功加务动助動勝包化北区區十千华单南博原去县参及友双反发取变口古只可台史右号司" +
		"合吉同名后向君否告员周命四回因国图國園土在地场士处复夏外多夜夢太夫失头奇奈女好如始字存孝学學宇守安完宗官定宝实客" +
		"宮家容宿密富对寺导小少尔就尾川州工左已巴市布希帝師常平庄序库应店府度座康心必志忠态思性怪情想意愛成我或户房所手才" +
		"打故效教数文料断斯新方族无日时昌明星春昭显時最會月有服望朝期木未本朱机李村条来東松标校株样根格歌止正此武死氏民水" +
		"永流测海火無然片版物特王球理用田由甲电男画界番白皇目直相省看真神立站章竹老而聖能舞航花行術街衛表装要見親語试话该" +
		"语说请超过运近返还这进连送选通速造連進道達遠選郎郡部都里重野量金門開間门问间陽隆隊雄雅集雪雲電飛食高"
	kanaOne = "いかがしすたてでとなにのはらりるれをイクットラル・"
)

// runeRange begins at from and ends before the next one.
type runeRange struct {
	from rune
	cost uint16
}

// runeRanges is sorted. Ranges that canonical composition or a compatibility
// mapping makes longer (388) are the ones that some family takes apart.
var runeRanges = [...]runeRange{
	{0x80, 63},  // punctuation and controls of Latin-1
	{0xa0, 32},  // white space
	{0xa1, 63},  // punctuation and controls of Latin-1
	{0xc0, 51},  // Latin letters
	{0xd7, 63},  // punctuation and controls of Latin-1
	{0xd8, 51},  // Latin letters
	{0xf7, 63},  // punctuation and controls of Latin-1
	{0xf8, 51},  // Latin letters
	{0x250, 65}, // other two-byte characters
	{0x300, 65}, // combining marks
	{0x370, 41}, // Greek
	{0x400, 64}, // Cyrillic outside the Russian alphabet
	{0x410, 64}, // Russian capitals
	{0x430, 37}, // Russian
	{0x450, 64}, // Cyrillic outside the Russian alphabet
	{0x530, 65}, // other two-byte characters
	{0x590, 61}, // Hebrew
	{0x600, 56}, // Arabic
	{0x700, 65}, // other two-byte characters
	{0x750, 56}, // Arabic
	{0x780, 65}, // other two-byte characters
	{0x800, 99}, // other three-byte characters
	// Devanagari, and what grows when normalised
	{0x900, 88}, {0x958, 388}, {0x960, 88},
	// other Indic scripts, and what grows when normalised
	{0x980, 97}, {0x9dc, 388}, {0x9de, 97}, {0x9df, 388}, {0x9e0, 97}, {0xa33, 388},
	{0xa34, 97}, {0xa36, 388}, {0xa37, 97}, {0xa59, 388}, {0xa5f, 97},
	{0xe00, 90}, // Thai
	// Lao, Tibetan, Burmese, Khmer, and what grows when normalised
	{0xe80, 96}, {0xf43, 388}, {0xf44, 96}, {0xf4d, 388}, {0xf4e, 96}, {0xf52, 388},
	{0xf53, 96}, {0xf57, 388}, {0xf58, 96}, {0xf5c, 388}, {0xf5d, 96}, {0xf69, 388},
	{0xf6a, 96}, {0xf73, 388}, {0xf74, 96}, {0xf75, 388}, {0xf7a, 96}, {0xf81, 388},
	{0xf82, 96}, {0xf93, 388}, {0xf94, 96}, {0xf9d, 388}, {0xf9e, 96}, {0xfa2, 388},
	{0xfa3, 96}, {0xfa7, 388}, {0xfa8, 96}, {0xfac, 388}, {0xfad, 96}, {0xfb9, 388},
	{0xfba, 96},
	{0x10a0, 96},   // Georgian
	{0x1100, 99},   // other three-byte characters
	{0x1780, 96},   // Lao, Tibetan, Burmese, Khmer
	{0x1800, 99},   // other three-byte characters
	{0x1e00, 82},   // Latin letters of Vietnamese
	{0x1f00, 99},   // other three-byte characters
	{0x2000, 32},   // white space
	{0x200b, 64},   // zero width and direction
	{0x2010, 29},   // general punctuation
	{0x202a, 64},   // zero width and direction
	{0x202f, 32},   // white space
	{0x2030, 29},   // general punctuation
	{0x205f, 32},   // white space
	{0x2060, 64},   // zero width and direction
	{0x2061, 29},   // general punctuation
	{0x2070, 92},   // symbols
	{0x2500, 39},   // box drawing, common
	{0x2501, 40},   // box drawing
	{0x2588, 39},   // box drawing, common
	{0x2589, 40},   // box drawing
	{0x25a0, 96},   // shapes and dingbats
	{0x2800, 92},   // symbols
	{0x2adc, 388},  // grows when normalised
	{0x2add, 92},   // symbols
	{0x2e80, 96},   // CJK punctuation and full-width forms
	{0x3000, 32},   // white space
	{0x3001, 96},   // CJK punctuation and full-width forms
	{0x3040, 64},   // kana
	{0x3100, 99},   // other three-byte characters
	{0x3300, 388},  // grows when normalised
	{0x3400, 103},  // rare Han
	{0x4e00, 95},   // Han
	{0xa000, 99},   // other three-byte characters
	{0xac00, 85},   // Hangul
	{0xd7b0, 99},   // other three-byte characters
	{0xf900, 103},  // rare Han
	{0xfb00, 99},   // other three-byte characters
	{0xfb1d, 388},  // grows when normalised
	{0xfb50, 99},   // other three-byte characters
	{0xfdfa, 388},  // grows when normalised
	{0xfdfc, 99},   // other three-byte characters
	{0xfe00, 56},   // variation selectors
	{0xfe10, 99},   // other three-byte characters
	{0xfeff, 64},   // zero width and direction
	{0xff00, 96},   // CJK punctuation and full-width forms
	{0xfff0, 99},   // other three-byte characters
	{0xfffd, 50},   // replacement character
	{0xfffe, 99},   // other three-byte characters
	{0x10000, 129}, // beyond the first plane
	{0x1d15e, 388}, // grows when normalised
	{0x1d165, 129}, // beyond the first plane
	{0x1d1bb, 388}, // grows when normalised
	{0x1d1c1, 129}, // beyond the first plane
	{0x1d400, 129}, // mathematical letters
	{0x1d800, 129}, // beyond the first plane
	{0x1f000, 130}, // emoji
	{0x1fb00, 129}, // beyond the first plane
}
