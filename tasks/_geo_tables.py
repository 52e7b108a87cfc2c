"""What GeoNames has only as a code, or spells in a way that English prose does not: names of currencies,
languages and continents, other names of countries, and which countries take an article."""

from __future__ import annotations


def _table(entries: str) -> dict[str, str]:
    """Entries "CODE the rest", divided by "|", as code -> rest."""
    parts = (entry.strip().partition(" ") for entry in entries.split("|"))
    return {code: rest for code, _, rest in parts}


def _codes(codes: str) -> frozenset[str]:
    return frozenset(codes.split())


CONTINENTS = {
    "AF": "Africa",
    "AN": "Antarctica",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}

UK_NATIONS = {"ENG": "England", "SCT": "Scotland", "WLS": "Wales", "NIR": "Northern Ireland"}

COUNTRY_NAMES = _table("""
AX Åland Islands | BL Saint Barthélemy | BQ Caribbean Netherlands | CW Curaçao | MO Macau | NL Netherlands |
RE Réunion | TL Timor-Leste | VA Vatican City
""")
"""Better spellings than GeoNames' own, by ISO code."""

CAPITALS = {
    "AG": "Saint John’s",
    "GD": "Saint George's",
    "GG": "Saint Peter Port",
    "KZ": "Astana",
    "MN": "Ulan Bator",
}
"""Capitals as GeoNames' table of places names them, where its table of countries has another form."""

CAPITAL_OTHER_NAMES = _table("""
AT Wien | BE Bruxelles; Brussel | CH Berne | CN Peking | CU La Habana | CZ Praha | DK København |
DZ Alger; El Djazair | FI Helsingfors | GR Athina | IT Roma | KZ Nur-Sultan; Nursultan |
MD Kishinev | MG Tananarive | MM Naypyidaw; Naypyitaw | MN Ulaanbaatar | MX Ciudad de México |
PA Ciudad de Panamá | PL Warszawa | PT Lisboa | PW Ngerulmud | RO București | RS Beograd | RU Moskva |
TD Ndjamena | UA Kiev | US Washington, D.C.; Washington DC | UZ Toshkent | VN Ha Noi | XK Prishtina
""")
"""Other names of capitals, divided by "; "."""

ARTICLE = _codes("AE AX BQ BS CD CF CG CK DO FK FO GB GM IM KM KY MH MP MV NL PH PS SB SC TC US VG VI")
"""Countries whose name takes "the" in a sentence."""

OTHER_NAMES = _table("""
AE UAE; Emirates | BA Bosnia; Bosnia-Herzegovina | BN Brunei Darussalam |
BS The Bahamas; Commonwealth of the Bahamas | BY Belorussia | CD DR Congo; Congo-Kinshasa; DRC; Zaire |
CG Congo Republic; Congo-Brazzaville | CI Côte d'Ivoire; Cote d'Ivoire |
CN People's Republic of China; PRC | CV Cape Verde | CZ Czech Republic |
DE Federal Republic of Germany | FM Federated States of Micronesia | FR French Republic |
GB Great Britain; Britain | GM The Gambia | GR Hellenic Republic | IE Republic of Ireland |
IR Islamic Republic of Iran; Persia | KG Kyrgyz Republic; Kirghizia |
KP Democratic People's Republic of Korea; DPRK | KR Republic of Korea; Republic of South Korea |
LA Lao People's Democratic Republic | LY Libyan Arab Jamahiriya | MD Republic of Moldova |
MK Republic of North Macedonia; Macedonia | MM Burma | NL The Netherlands; Holland |
PH The Philippines; Republic of the Philippines | PS Palestine; State of Palestine | RU Russian Federation |
SK Slovak Republic | ST São Tomé and Príncipe | SY Syrian Arab Republic | SZ Swaziland | TL East Timor |
TR Türkiye; Turkiye | TZ United Republic of Tanzania | US United States of America; USA |
VA Holy See; Vatican | VN Viet Nam
""")
"""Other English names of countries, by ISO code, divided by "; "."""

TERRITORIES = _codes(
    "AI AS AW AX BL BM BQ CC CK CW CX FK FO GF GG GI GL GP GU HK IM JE KY MF MO MP MQ MS NC NF NU PF PM PN "
    "PR RE SH SJ SX TC TK VG VI WF YT EH PS"
)
"""Dependencies and lands of disputed status: in the corpus, but no question treats them as countries."""

SEVERAL_CAPITALS = frozenset({"BO", "IL", "ZA"})
"""Countries about whose capital sources disagree: the passage says GeoNames' view, no question asks."""

NO_BORDER = frozenset({("CU", "US"), ("US", "CU")})
"""Pairs that GeoNames calls neighbours and that are none (a leased naval base)."""

SEVERAL_CONTINENTS = frozenset({"AM", "AZ", "CY", "EG", "GE", "KZ", "RU", "TL", "TR"})
"""Countries that sources place in another continent, or in two: no question asks for it."""

CURRENCIES = _table("""
AED United Arab Emirates dirham | AFN Afghan afghani | ALL Albanian lek | AMD Armenian dram |
ANG Netherlands Antillean guilder | AOA Angolan kwanza | ARS Argentine peso | AUD Australian dollar |
AWG Aruban florin | AZN Azerbaijani manat | BAM Bosnian convertible mark | BBD Barbadian dollar |
BDT Bangladeshi taka | BGN Bulgarian lev | BHD Bahraini dinar | BIF Burundian franc | BMD Bermudian dollar |
BND Brunei dollar | BOB Bolivian boliviano | BRL Brazilian real | BSD Bahamian dollar |
BTN Bhutanese ngultrum | BWP Botswana pula | BYN Belarusian ruble | BZD Belize dollar | CAD Canadian dollar |
CDF Congolese franc | CHF Swiss franc | CLP Chilean peso | CNY Chinese yuan | COP Colombian peso |
CRC Costa Rican colón | CUP Cuban peso | CVE Cape Verdean escudo | CZK Czech koruna | DJF Djiboutian franc |
DKK Danish krone | DOP Dominican peso | DZD Algerian dinar | EGP Egyptian pound | ERN Eritrean nakfa |
ETB Ethiopian birr | EUR euro | FJD Fijian dollar | FKP Falkland Islands pound | GBP pound sterling |
GEL Georgian lari | GHS Ghanaian cedi | GIP Gibraltar pound | GMD Gambian dalasi | GNF Guinean franc |
GTQ Guatemalan quetzal | GYD Guyanese dollar | HKD Hong Kong dollar | HNL Honduran lempira |
HTG Haitian gourde | HUF Hungarian forint | IDR Indonesian rupiah | ILS Israeli shekel | INR Indian rupee |
IQD Iraqi dinar | IRR Iranian rial | ISK Icelandic króna | JMD Jamaican dollar | JOD Jordanian dinar |
JPY Japanese yen | KES Kenyan shilling | KGS Kyrgyzstani som | KHR Cambodian riel | KMF Comorian franc |
KPW North Korean won | KRW South Korean won | KWD Kuwaiti dinar | KYD Cayman Islands dollar |
KZT Kazakhstani tenge | LAK Lao kip | LBP Lebanese pound | LKR Sri Lankan rupee | LRD Liberian dollar |
LSL Lesotho loti | LYD Libyan dinar | MAD Moroccan dirham | MDL Moldovan leu | MGA Malagasy ariary |
MKD Macedonian denar | MMK Myanmar kyat | MNT Mongolian tugrik | MOP Macanese pataca |
MRU Mauritanian ouguiya | MUR Mauritian rupee | MVR Maldivian rufiyaa | MWK Malawian kwacha |
MXN Mexican peso | MYR Malaysian ringgit | MZN Mozambican metical | NAD Namibian dollar | NGN Nigerian naira |
NIO Nicaraguan córdoba | NOK Norwegian krone | NPR Nepalese rupee | NZD New Zealand dollar | OMR Omani rial |
PAB Panamanian balboa | PEN Peruvian sol | PGK Papua New Guinean kina | PHP Philippine peso |
PKR Pakistani rupee | PLN Polish zloty | PYG Paraguayan guaraní | QAR Qatari riyal | RON Romanian leu |
RSD Serbian dinar | RUB Russian ruble | RWF Rwandan franc | SAR Saudi riyal | SBD Solomon Islands dollar |
SCR Seychellois rupee | SDG Sudanese pound | SEK Swedish krona | SGD Singapore dollar |
SHP Saint Helena pound | SLE Sierra Leonean leone | SOS Somali shilling | SRD Surinamese dollar |
SSP South Sudanese pound | STN São Tomé and Príncipe dobra | SYP Syrian pound | SZL Swazi lilangeni |
THB Thai baht | TJS Tajikistani somoni | TMT Turkmenistani manat | TND Tunisian dinar | TOP Tongan paʻanga |
TRY Turkish lira | TTD Trinidad and Tobago dollar | TWD New Taiwan dollar | TZS Tanzanian shilling |
UAH Ukrainian hryvnia | UGX Ugandan shilling | USD United States dollar | UYU Uruguayan peso |
UZS Uzbekistani som | VES Venezuelan bolívar | VND Vietnamese dong | VUV Vanuatu vatu | WST Samoan tala |
XAF Central African CFA franc | XCD East Caribbean dollar | XCG Caribbean guilder |
XOF West African CFA franc | XPF CFP franc | YER Yemeni rial | ZAR South African rand | ZMW Zambian kwacha |
ZWG Zimbabwe Gold
""")
"""English names of currencies, by ISO 4217 code."""

CURRENCY_OTHER_NAMES = _table("""
CNY yuan; renminbi; yuan renminbi; Chinese yuan renminbi | GBP British pound; sterling; pounds sterling |
JPY yen | KRW Korean won | THB baht | USD US dollar; American dollar |
XAF Central African franc | XOF West African franc
""")
"""Further English names of currencies, divided by "; "."""

LANGUAGES = _table("""
af Afrikaans | am Amharic | ar Arabic | ay Aymara | az Azerbaijani | be Belarusian | bg Bulgarian |
bi Bislama | bn Bengali | bs Bosnian | ca Catalan | ch Chamorro | cmn Mandarin | cs Czech | cy Welsh |
da Danish | de German | dv Dhivehi | dz Dzongkha | el Greek | en English | es Spanish | et Estonian |
eu Basque | fa Persian | fi Finnish | fil Filipino | fj Fijian | fo Faroese | fr French | fy Frisian |
ga Irish | gd Scottish Gaelic | gil Gilbertese | gl Galician | gn Guarani | gv Manx | ha Hausa |
haw Hawaiian | he Hebrew | hi Hindi | hr Croatian | ht Haitian Creole | hu Hungarian | hy Armenian |
id Indonesian | is Icelandic | it Italian | iu Inuktitut | ja Japanese | jv Javanese | ka Georgian |
kg Kongo | kk Kazakh | kl Greenlandic | km Khmer | ko Korean | ku Kurdish | ky Kyrgyz | la Latin |
lb Luxembourgish | lg Luganda | ln Lingala | lo Lao | lt Lithuanian | lv Latvian | mg Malagasy |
mh Marshallese | mi Maori | mk Macedonian | mn Mongolian | mos Mossi | ms Malay | mt Maltese | my Burmese |
na Nauruan | ne Nepali | nl Dutch | nn Nynorsk | no Norwegian | ny Chichewa | om Oromo | pa Punjabi |
pap Papiamento | pau Palauan | pl Polish | ps Pashto | pt Portuguese | qu Quechua | rm Romansh | rn Kirundi |
ro Romanian | ru Russian | rw Kinyarwanda | se Northern Sami | sg Sango | si Sinhala | sk Slovak |
sl Slovene | sm Samoan | sn Shona | so Somali | sq Albanian | sr Serbian | ss Swazi | st Sotho | sv Swedish |
sw Swahili | ta Tamil | te Telugu | tet Tetum | tg Tajik | th Thai | ti Tigrinya | tk Turkmen | tl Tagalog |
tn Tswana | to Tongan | tpi Tok Pisin | tr Turkish | ty Tahitian | uk Ukrainian | ur Urdu | uz Uzbek |
vi Vietnamese | wo Wolof | xh Xhosa | yo Yoruba | yue Cantonese | zh Chinese | zu Zulu
""")
"""English names of languages, by the code that GeoNames uses."""
