"""Benchmark graphs: products, co-authors, citations, Wikipedia, social networks."""

from functools import partial

from tempergat.data.catalog.entry import Entry, on_first_use
from tempergat.data.catalog.files import FILES

_MADE_BY_CLASS = (
    "made: 60/20/20 of every class with seed 0 (there is no official split)"
)

_made_split_entry = partial(Entry, split=_MADE_BY_CLASS, num_splits=0, stratified=True)
_csr_entry = partial(
    _made_split_entry,
    reader=on_first_use("readers.csr_parts.read_csr_parts"),
    license="MIT (shchur/gnn-benchmark)",
)
_citation_entry = partial(_csr_entry, license="MIT (abojchevski/graph2gauss)")
_attributed_entry = partial(
    _made_split_entry,
    reader=on_first_use("readers.attributed.read_attributed"),
)
_musae_entry = partial(_made_split_entry, license="none stated (MUSAE, from SNAP)")
_read_twitch = on_first_use("readers.musae.read_twitch")
_twitch_entry = partial(
    _musae_entry,
    raw_name="twitch",
    files=FILES["twitch"],
    num_features=3_170,
    num_classes=2,
)
BENCHMARK_ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="amazon_photo",
        description="photo products bought together",
        reader=on_first_use("readers.csr_parts.read_csr_parts"),
        files=FILES["amazon_photo"],
        folders=("amazon_photo", "Photo", "photo"),
        num_nodes=7_650,
        num_edges=238_162,
        num_features=745,
        num_classes=8,
        license="MIT (EdisonLeeeee/GraphData, shchur/gnn-benchmark)",
        split="made: 60/20/20 with seed 0 (there is no official split)",
        num_splits=0,
    ),
    _csr_entry(
        name="amazon_computers",
        description="computer products bought together",
        files=FILES["amazon_computers"],
        folders=("amazon_computers", "Computers", "computers"),
        num_nodes=13_752,
        num_edges=491_722,
        num_features=767,
        num_classes=10,
    ),
    _csr_entry(
        name="coauthor_cs",
        description="authors of joint papers on computer science; their field",
        files=FILES["coauthor_cs"],
        folders=("coauthor_cs", "CS", "more"),
        num_nodes=18_333,
        num_edges=163_788,
        num_features=6_805,
        num_classes=15,
    ),
    _csr_entry(
        name="coauthor_physics",
        description="authors of joint papers on physics; their field",
        files=FILES["coauthor_physics"],
        folders=("coauthor_physics", "Physics", "more"),
        num_nodes=34_493,
        num_edges=495_924,
        num_features=8_415,
        num_classes=5,
    ),
    _citation_entry(
        name="cora_full",
        description="citation graph, bag of words, all papers of Cora (CitationFull)",
        files=FILES["cora_full"],
        folders=("cora_full",),
        num_nodes=19_793,
        num_edges=126_842,
        num_features=8_710,
        num_classes=70,
    ),
    _citation_entry(
        name="cora_ml",
        description="citation graph, bag of words, machine learning (CitationFull)",
        files=FILES["cora_ml"],
        folders=("cora_ml", "more"),
        num_nodes=2_995,
        num_edges=16_316,
        num_features=2_879,
        num_classes=7,
    ),
    _citation_entry(
        name="citeseer_full",
        description="citation graph, bag of words, larger than citeseer (CitationFull)",
        files=FILES["citeseer_full"],
        folders=("citeseer_full", "more"),
        num_nodes=4_230,
        num_edges=10_674,
        num_features=602,
        num_classes=6,
    ),
    _citation_entry(
        name="dblp_full",
        description="citation graph, bag of words (CitationFull); not the typed dblp",
        files=FILES["dblp_full"],
        folders=("dblp_full",),
        num_nodes=17_716,
        num_edges=105_734,
        num_features=1_639,
        num_classes=4,
    ),
    _citation_entry(
        name="pubmed_full",
        description="citation graph of pubmed, words 0 or 1 (CitationFull)",
        files=FILES["pubmed_full"],
        folders=("pubmed_full",),
        num_nodes=19_717,
        num_edges=88_648,
        num_features=500,
        num_classes=3,
    ),
    Entry(
        name="wikics",
        description="Wikipedia pages on computer science, mean word vectors",
        reader=on_first_use("readers.wikics.read_wikics"),
        files=FILES["wikics"],
        folders=("wikics", "WikiCS"),
        num_nodes=11_701,
        num_edges=431_726,
        num_features=300,
        num_classes=10,
        license="MIT (pmernyei/wiki-cs-dataset)",
        split="official: 5 / 22.5 / 50 %, twenty of them with one test set",
        num_splits=20,
        note="links are followed both ways; the fourth part of each split, for early "
        "stopping, is not used",
    ),
    _attributed_entry(
        name="flickr",
        description="users of Flickr who follow each other; their interest group",
        files=FILES["flickr"],
        folders=("flickr", "more"),
        num_nodes=7_575,
        num_edges=479_476,
        num_features=12_047,
        num_classes=9,
        note="the attributed network of 7,575 users, not GraphSAINT's Flickr of 89,250 "
        "images",
    ),
    _attributed_entry(
        name="blogcatalog",
        description="bloggers who follow each other; their topic",
        files=FILES["blogcatalog"],
        folders=("blogcatalog", "more"),
        num_nodes=5_196,
        num_edges=343_486,
        num_features=8_189,
        num_classes=6,
    ),
    _musae_entry(
        name="facebook",
        description="Facebook pages that like each other; the kind of page (MUSAE)",
        reader=on_first_use("readers.musae.read_facebook"),
        files=FILES["facebook"],
        folders=("facebook", "more/facebook"),
        num_nodes=22_470,
        num_edges=341_825,
        num_features=4_714,
        num_classes=4,
    ),
    _musae_entry(
        name="github",
        description="developers who follow each other; web or machine learning (MUSAE)",
        reader=on_first_use("readers.musae.read_github"),
        files=FILES["github"],
        folders=("github", "more/github"),
        num_nodes=37_700,
        num_edges=578_006,
        num_features=4_005,
        num_classes=2,
    ),
    *(
        _twitch_entry(
            name=f"twitch_{language}",
            description=f"streamers in {words} who follow each other; mature or not "
            "(MUSAE)",
            reader=partial(_read_twitch, folder=folder),
            folders=(f"twitch_{language}", f"more/twitch_{language}"),
            num_nodes=nodes,
            num_edges=2 * edges,
        )
        for language, folder, words, nodes, edges in (
            ("de", "DE", "German", 9_498, 153_138),
            ("en", "ENGB", "English", 7_126, 35_324),
            ("es", "ES", "Spanish", 4_648, 59_382),
            ("fr", "FR", "French", 6_549, 112_666),
            ("pt", "PTBR", "Portuguese", 1_912, 31_299),
            ("ru", "RU", "Russian", 4_385, 37_304),
        )
    ),
)
