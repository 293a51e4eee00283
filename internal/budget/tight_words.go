package budget

// coreWords are the words that each of the 23 measured tokenizer families holds
// as one token, after a space and after punctuation alike.
const coreWords = "" +
	"ALL AND API Abstract Access Account Act Action Active Activity Add Address After Agent All And Android Any App " +
	"Application Arch Are Area Arg Array Art Audio Author Auto Back Background Bad Bar Base Before Big Bit Black " +
	"Block Blue Body Book Box Build Bus But Button COM Call Can Cap Card Case Category Cell Center Change Channel " +
	"Char Check Child Children Class Clear Click Client Close Cloud Code Col Collection Color Column Com Command " +
	"Comment Common Comp Component Config Connection Const Content Context Control Controller Copy Core Count Create " +
	"Cur Current Custom Data Database Date David Day Dec Default Definition Del Dep Der Description Det Details Dev " +
	"Device Did Dir Direct Display Doc Document Does Don Double Down Draw Driver END Each Edit Editor Effect Element " +
	"Email End Engine English Ent Enter Entry Environment Error Event Events Every Exception Exp Ext FOR Face " +
	"Factory False Family Field File Files Filter Final Find First Flag Flow Font For Form Format Found Frame Free " +
	"From Full Function GET Gen General Get Global Google Graph Grid Group HTML HTTP Has Hash Have Head Hello Help " +
	"Her Here High History Home Host How However Hub INT ISO Icon Image Index Info Information Initial Input Int " +
	"Integer Inv Item JSON Jack Jan Java Job John Just KEY Key Kind Kit Label Last Left Len Let Level Lib Library " +
	"Light Like Line Link List Live Load Local Location Lock Log Login Long Look MAX Mac Mail Main Make Man Manager " +
	"Many Map Mar Mark Master Mat Match Math Matrix Max May Media Mem Member Memory Menu Message Meta Method Min " +
	"Mode Model Module Mon More Mouse Move NOT NULL Name Names Net Network New Next Node Non None Not Note Nothing " +
	"Now Number OUT Object Oct Off Old Once One Only Open Operation Option Options Order Other Out Output Over PDF " +
	"PRO Package Page Par Parent Part Pass Path Paul Per Phone Plan Please Plus Point Policy Pool Port Pos Position " +
	"Post Power Pre Press Price Print Pro Process Product Profile Program Progress Project Prop Property Public " +
	"Query Range Read Real Record Red Ref Reference Reg Register Rel Report Request Res Resource Response Rest " +
	"Result Results Ret Return Right Root Row Rule Run SET SQL Sample Save Screen Script Search Sec Second Section " +
	"Security See Select Send Serial Server Service Services Session Set Settings Short Show Sign Simple Since " +
	"Single Site Size Some Source Space Spec Special Stack Star Start Stat State Station Status Step Stop Storage " +
	"Store Str Stream String Style Sub Success Sum Support System THE Tab Table Tag Take Target Task Team Template " +
	"Term Test Tex Text Thanks That The Then There They This Thread Three Time Title Tool Top Total Track Tree True " +
	"Two Type Types URL UTC Under Unit Update Use User Users VAL Val Value Var Vector Ver Version Video View Wait " +
	"Web What When Where White Why Will Win Window Windows With Word Work World Write Yes You Your ability able " +
	"about abs acc accept access account ace act action actions activ active activity actual add added adding " +
	"address admin aff after age agent ago air ale alert align all alle alloc allow alone alpha also alt alter " +
	"although amb amount analysis and android ang angle ann ant any api app append apple application apply apt arc " +
	"arch archive are area aren arg args argument arm around arr array arrow art article arts asc ask assert assets " +
	"ast atom atomic attribute audio auth author auto aux available aware away axis back background bad bag bal ball " +
	"ban band bank bar bas base based bat batch bean because bed before begin bell ben ber best beta between big bin " +
	"bind binding bird bit bits black blank block blue body bold book bool boot border bot both bottom bound box boy " +
	"brand break bridge buffer bug build builder building built bus but button byte bytes cache cal call callback " +
	"called camera camp can cap car card cards care cas case cases cast cat catch category cell cent center cert cha " +
	"chain change channel char character charge chart chat che check checked chem chi child children cho choice city " +
	"class classes clean clear click client clock close closed cloud cmd code col collect collection color column " +
	"com come comes coming comm command comment commit common comp company complete component con cond condition " +
	"conf config conn connect connected connection cons console const construct cont contact container content " +
	"context continue control controller conv cook copy core correct cos cost could count counter country course " +
	"cover create created crit cross cup cur current custom cut cycle dan dark dat data database date dates day days " +
	"debug dec deep def default define defined deg del delete dem den dep depth der des desc description dest det " +
	"detail details dev develop device dict did die diff dim dimensional dir direct direction directory dis display " +
	"dist distance div doc document does dog dom domain don done door dot double down download draw drive driver dro " +
	"drop due dump each ear ears echo edge edit editor eff effect ele element ell else email empty enable enabled " +
	"enc end ended ending ends engine ent enter entity entry enum env environment equal err error errors est este " +
	"etc eth eval even event events ever every example except exec execute exit exp expected export ext extra fab " +
	"fac face fact factor fail fall falls false family far fast feed fer field fields figure fil file filename files " +
	"fill filled filter fin final find fire first fit five fix fixed flag flags flat flex float floor flow fly focus " +
	"folder follow font for force form format former forms forward found four frame frames framework free from front " +
	"full fully fun func function gas gate gel gen gender general generated get gets git glass global going good " +
	"google got grand graph green grid gro ground group groups guard had half hand handle handler har hard has hash " +
	"hat have head header headers heart height help hem her here hex hidden hide high history hit hold hole home " +
	"hook hor host hot house hover how html http https human ice icon ide ident image images img imm imp impl import " +
	"important inc include including ind index inf info information init initial inline inner input ins insert inst " +
	"install instance int interface internal into inv ion issue item items iter its jan jar java job join json just " +
	"keep key keys kil kill kind know known lab label lad lan land lang language large las last lat late law layer " +
	"layout leading leaf learn learning led left leg legal len length les less let lets letter level lib library " +
	"life light like limit limited line linear lines link links list lists lit liter live load loaded loading local " +
	"location lock log login long look loop los lot low lower mac made mag mail main major make making mal man " +
	"management manager many map maps margin mark market marks mas mask master mat match material math max may mean " +
	"med media mem member members memory men ment menu mes message met meta metadata method mic mid middle min mine " +
	"miss mit mobile mod mode model models module modules mont month more most mot mount mouse mouth move msg must " +
	"mut name named names nan nas native natural nav need negative net new news next nic nick night node nom non " +
	"none nor norm normal not note notes now null num number nut obj object objects obs odd off offset old older " +
	"once one ones online only ont onto open operation operator opt option options ord order ordered org orig origin " +
	"original other our out outer output over own owned owner pack package pad padding page pages pair pan panel " +
	"paper par param params parent parse parser part partial parts party pass password patch path pattern payment " +
	"pdf pen people per percent period person phase phone pic pick picture pin pipe place plain plan plane platform " +
	"play plugin plus pod point points policy poly pool pop por port ports pos position post pot power pre pred " +
	"prefix present press prev price primary prime print private pro process processing product production profile " +
	"program progress project proof prop properties property protected prov pub public push put python quad qual " +
	"quality que query question queue quote radio radius raise ram ran random range rank rate raw ray react read " +
	"reader ready real rec record rect red ref reference reg region register regular rel related release rem remove " +
	"ren render rent rep replace report req request require required res reset resource resources resp respond " +
	"response rest result results ret return rev review rice right ring rock role roll rolling rom room round route " +
	"row rows rug rule rules run runner running safe sal sample save say scale scan scene scope score screen script " +
	"scroll search sec second secret sect section secure security sed see seed seen select selected self sem sen " +
	"send sent sequ ser serial series server service services session set sets setting settings setup shadow shape " +
	"share shared sheet shell shift ship short shot should show side sign signed simple sin since single site six " +
	"size ski skip sleep small socket soft sol some something son sort sound source space span spec special specific " +
	"speed split square src stack stage standard standing star start stat state states static stats status std ste " +
	"step steps stone stop storage store str stream string strip stroke strong struct student style styles " +
	"sub subject submit success such sum summary sun sup super support supported sur switch sym sync sys system tab " +
	"table tag tags tail take tal tan tar target task team tem temp template ten ter term test testing text than " +
	"that the theme then there they thing third this though thread three through throw til time timeout timer times " +
	"title token tool tools top topic tor total touch tra trace track train trans transform tre tree tri true try " +
	"turn two typ type types uint ult und under une union unique unit unsigned until update upload url usage use " +
	"used user username users uses using util val valid value values van var vari variable vector vel ver verb vers " +
	"version vert very via video view virtual visible vision void vol volume wait walk war was watch water wave way " +
	"ways web week weight well west what when where which while white who why wide widget width will win wind window " +
	"wire with without won word words work worker working works world worth wrap write writer writing written www " +
	"xml yard year yes you your zero zip zone "
