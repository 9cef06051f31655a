"""Commands list what they wrote, and of many files the folder and the first picture."""

from stripesim.cli.output import MANIFEST, list_written


def test_few_files_are_listed_one_by_one(tmp_path, capsys):
    paths = [tmp_path / "results.csv", tmp_path / "headline.png"]
    list_written(paths)
    assert capsys.readouterr().err == "".join(f"wrote {path}\n" for path in paths)
    assert not (tmp_path / MANIFEST).exists()


def test_many_files_take_one_line_and_a_manifest(tmp_path, capsys):
    figures = [
        tmp_path / f"{name}.{suffix}"
        for name in ("headline", *"abcdefgh")
        for suffix in ("svg", "png")
    ]
    paths = [tmp_path / "results.csv", *figures, tmp_path / "ablated" / "a.csv"]
    list_written(paths)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    # One table, nine figures of two files each, and one file of an ablation.
    assert "20 files" in lines[0]
    assert str(tmp_path) in lines[0]
    assert "headline.png" in lines[0]
    listed = (tmp_path / MANIFEST).read_text(encoding="utf-8").splitlines()
    assert [tmp_path / name for name in listed] == paths


def test_many_files_without_a_picture_name_none(tmp_path, capsys):
    list_written([tmp_path / f"{number}.csv" for number in range(40)])
    assert "picture" not in capsys.readouterr().err


def test_files_of_an_earlier_answer_are_named(tmp_path, capsys):
    # Given an answer of 20 files, listed in the folder
    first = [tmp_path / f"{number}.png" for number in range(20)]
    for path in first:
        path.touch()
    list_written(first)
    assert "still holds" not in capsys.readouterr().err
    # When the next one writes all but two of them, one of which was deleted
    first[1].unlink()
    list_written(first[2:])
    # Then the other one is stale.
    warning = (
        f"warning: {tmp_path} still holds 1 file of an earlier answer, such as 0.png"
    )
    assert warning in capsys.readouterr().err
