"""Goldens of the text games: transcripts of GEM's own games, legal and illegal moves mixed, and draws of `random`.

Usage:  python tools/golden/games.py CHECKOUT tests/goldens/games [NAME ...]
Made with Python 3.11.7 and axon-rl/gem at commit 4069f2f8d45f5047ac13221f7c90c8b19927d43a, checked out in CHECKOUT,
in five calls, since one stream of moves runs through a call: GuessTheNumber; Mastermind; random TowerofHanoi Minesweeper
FifteenPuzzle Game2048; Sudoku; Wordle Hangman. The last one needs NLTK (3.10.4) and its corpus `words` (nltk/nltk_data at
commit 5db857e, packages/corpora/words.zip), unpacked into corpora/ of the folder that the variable NLTK_DATA names; its
games are the same in gem-llm 0.1.0 of PyPI.

<name>.jsonl.gz, one game a line: [level, seed, state at the start, moves, rewards, flags, state at the end, digest].
A flag is - (goes on), T (terminated) or B (terminated and truncated). The digest is the MD5 of all states, the first one
included, joined by newlines: it compares the board after every move. What a state is: see the functions below, and
`state()` of each game here. The random FifteenPuzzle of GEM crashes when it is made; it is made with a size here and told
to draw one afterwards. GEM's dependency reasoning_gym is not needed for these games and replaced by an empty module.
"""

import gzip
import hashlib
import io
import json
import random
import sys
import types
from pathlib import Path

checkout, target, *only = sys.argv[1:]
stub = types.ModuleType("reasoning_gym.factory")
stub.DATASETS = {}
sys.modules["reasoning_gym"] = types.ModuleType("reasoning_gym")
sys.modules["reasoning_gym"].factory = stub
sys.modules["reasoning_gym.factory"] = stub

sys.path.insert(0, checkout)
player = random.Random(20261120)  # of its own: the games draw from the global generator
DIRECTIONS = ["up", "down", "left", "right"]
JUNK = ["", "no move", "\\boxed{}", "boxed{1}", "\\boxed{{1}}", "\\boxed{-1 2 3}", "\\boxed{" + "9" * 4301 + "}", "\\boxed{x y z!}"]


def box(*parts, sep=" "):
    return "\\boxed{" + sep.join(map(str, parts)) + "}"


def rows(board, sep=" "):
    return "/".join(sep.join(map(str, row)) for row in board)


def guess_state(env):
    return f"{env.min_number}-{env.max_number} {env.game_number} " + ",".join(map(str, sorted(env.previous_guesses)))


def guess_move(env, kind):
    low, high = env.min_number, env.max_number
    if kind == "smart":
        for g in env.previous_guesses:
            low, high = (low, min(high, g - 1)) if g > env.game_number else (max(low, g + 1), high)
        return box((low + high) // 2)
    if kind == "odd":
        return player.choice([
            box(high + player.randint(1, 9)), box(10**300), box("0", player.randint(1, 9), sep=""), box("\u0663"),
            box("\U0001d7d7"), box(*(env.previous_guesses or [low]), sep="} \\boxed{"), box(99, sep="") + box(low)])
    return box(player.randint(low, high))


def mastermind_state(env):
    guesses = sorted(" ".join(map(str, g)) for g in env.previous_guesses)
    return f"{' '.join(map(str, env.game_code))} {env.num_numbers}|{','.join(guesses)}"


def mastermind_move(env, kind):
    n, k = env.num_numbers, env.code_length
    if kind == "smart":
        return box(*(c if player.random() < 0.7 else player.randint(1, n) for c in env.game_code))
    if kind == "odd":
        return player.choice([
            box(*range(1, k + 2)), box(1), box(*[n + 1] * k), box(*[0] * k), box(*range(1, k + 1), sep=" \t\u2003"),
            box(*[chr(0x0966 + c) for c in env.game_code]), box(*range(1, k + 1), sep="\x1f"),
            box(*range(1, k + 1), sep="\n")])
    return box(*(player.randint(1, n) for _ in range(k)))


def hanoi_state(env):
    return "/".join(" ".join(map(str, env.board[tower])) for tower in "ABC")


def hanoi_move(env, kind):
    if kind == "smart":
        target, move = 2, (0, 0)
        for disk in range(env.num_disks, 0, -1):
            at = next(i for i, tower in enumerate("ABC") if disk in env.board[tower])
            if at != target:
                move, target = (at, target), 3 - at - target
        return box("ABC"[move[0]], "ABC"[move[1]])
    a, b = player.choice("ABC"), player.choice("ABC")
    if kind == "odd":
        return player.choice([box(a, b, sep=""), box(a.lower(), b, sep=","), box(a, b, sep=" , "), box(a, b, sep="\u00a0"),
                              box(a, a), box(a, b) + box(b, a)])
    return box(a, b)


def mine_state(env):
    def cell(r, c):
        return str(env.grid[r][c]) if env.revealed[r][c] else "F" if env.flags[r][c] else "."
    shown = "/".join("".join(cell(r, c) for c in range(env.cols)) for r in range(env.rows))
    mines = "/".join("".join("*" if x == -1 else "." for x in row) for row in env.grid)
    return f"{shown} {mines}"


def mine_move(env, kind):
    cells = [(r, c) for r in range(env.rows) for c in range(env.cols)]
    r, c = player.choice(cells)
    if kind == "smart":
        safe = [(r, c) for r, c in cells if env.grid[r][c] != -1 and not env.revealed[r][c] and not env.flags[r][c]]
        mines = [(r, c) for r, c in cells if env.grid[r][c] == -1 and not env.flags[r][c]]
        if mines and (player.random() < 0.7 or not safe):
            return box("flag", *player.choice(mines))
        return box("reveal", *player.choice(safe)) if safe else box("flag", r, c)
    if kind == "odd":
        return player.choice([box("REVEAL", r, env.cols), box("Flag", r, c), box("dig", r, c), box("flag", r, c, sep="\t"),
                              box("reveal", env.rows, c), box("flag", chr(0xFF10 + r), c)])
    # Most boards would be lost at once by drawing any cell to reveal.
    return box("flag" if player.random() < 0.5 or env.grid[r][c] == -1 and player.random() < 0.8 else "reveal", r, c)


def fifteen_state(env):
    return rows([[x or 0 for x in row] for row in env.board])


def fifteen_move(env, kind):
    if kind == "smart" and env.num_rows == 2:  # around in one direction until it is solved
        r, c = env._get_empty_position()
        return box({(0, 0): "up", (1, 0): "left", (1, 1): "down", (0, 1): "right"}[r, c])
    if kind == "odd":
        return player.choice([box("up") + box("left"), box("right"), "\\boxed{\\boxed{down}}"])
    return box(player.choice(DIRECTIONS))


def sudoku_state(env):
    return rows(env.board, "") + " " + rows(env.full_grid, "")


def sudoku_move(env, kind):
    n = env.scale
    empty = [(r, c) for r in range(n) for c in range(n) if env.board[r][c] == 0]
    r, c = player.choice(empty)
    if kind == "smart" or kind == "plain" and player.random() < 0.5:
        return box(r + 1, c + 1, env.full_grid[r][c])
    if kind == "odd":
        return player.choice([box(0, 1, 1), box(r + 1, c + 1, n + 1), box(n + 1, 1, 1), box(10**30, 1, 1),
                              box(r + 1, c + 1, env.full_grid[r][c], sep="\n")])
    return box(player.randint(1, n), player.randint(1, n), player.randint(1, n))


def merge_state(env):
    return rows(env.board)


def merge_move(env, kind):
    if kind == "smart":
        return box(next((d for d in ["down", "left", "right", "up"] if env._is_valid_move(d)), "up"))
    if kind == "odd":
        return player.choice([box("UP"), box("Left") + box("right"), box("dOwN")])
    return box(player.choice(DIRECTIONS))


def wordle_state(env):
    return f"{env.secret_word} {''.join(map(str, env.milestones))} {','.join(sorted(env.previous_guesses))}"


def wordle_move(env, kind):
    word = player.choice(env.available_words)
    if kind == "smart":
        return box("".join(s if player.random() < 0.7 else w.upper() for s, w in zip(env.secret_word, word)), sep="")
    if kind == "odd":
        return player.choice([
            box(*word), box(*word, sep="\t"), box(*word, sep="  "), box(*word, sep="\u3000"), box(word + "S"), box(word[1:]),
            box("E" * len(word)), box(word.title()) + box(1), box(env.secret_word[1:] + env.secret_word[0]),
            box(*(env.previous_guesses or [word]))])
    return box(word)


def hangman_state(env):
    return f"{env.secret_word} {''.join(env.board)} {''.join(sorted(env.guessed_letters))}"


def hangman_move(env, kind):
    word = player.choice(env.available_words)
    if kind == "smart":
        return box(player.choice([c for c, shown in zip(env.secret_word, env.board) if shown == "_"] or [env.secret_word]))
    if kind == "odd":
        return player.choice([
            box(word + "s"), box(word[1:]), box("\u0131"), box("\u0130"), box("\u017f"), box("\u212a"), box(*word),
            "\\BOXED{e}", "\\Boxed{" + word + "}", box(env.secret_word.title().replace("i", "\u0131")), box(env.secret_word.lower()),
            box(*(env.guessed_letters or "e"), sep="} \\boxed{")])
    return box(player.choice([word, player.choice("abcdefghijklmnopqrstuvwxyzETAOIN")]))


R = None  # what the level random draws
GAMES = {
    "GuessTheNumber": ("guess_the_number:GuessTheNumberEnv", guess_state, guess_move, 340, {
        "easy": dict(min_number=1, max_number=10, max_turns=4), "hard": dict(min_number=1, max_number=50, max_turns=7),
        "random": dict(min_number=R, max_number=R, max_turns=R)}),
    "Mastermind": ("mastermind:MastermindEnv", mastermind_state, mastermind_move, 340, {
        "easy": dict(code_length=2, num_numbers=6, max_turns=10), "hard": dict(code_length=4, num_numbers=8, max_turns=30),
        "random": dict(code_length=R, num_numbers=R, max_turns=R)}),
    "TowerofHanoi": ("tower_of_hanoi:TowerofHanoiEnv", hanoi_state, hanoi_move, 340, {
        "easy": dict(num_disks=3, max_turns=10), "hard": dict(num_disks=5, max_turns=35),
        "random": dict(num_disks=R, max_turns=R)}),
    "Minesweeper": ("minesweeper:MinesweeperEnv", mine_state, mine_move, 340, {
        "easy": dict(rows=5, cols=5, num_mines=5, max_turns=25), "hard": dict(rows=8, cols=8, num_mines=12, max_turns=64),
        "random": dict(rows=R, cols=R, num_mines=R, max_turns=R)}),
    "FifteenPuzzle": ("fifteen_puzzle:FifteenPuzzleEnv", fifteen_state, fifteen_move, 340, {
        "easy": dict(num_rows=2, max_turns=10), "hard": dict(num_rows=4, max_turns=50), "random": "draws"}),
    "Sudoku": ("sudoku:SudokuEnv", sudoku_state, sudoku_move, (920, 30, 60), {
        "easy": dict(clues=10, max_turns=15, scale=4), "hard": dict(clues=50, max_turns=50, scale=9),
        "random": dict(clues=R, max_turns=R, scale=R)}),
    "Game2048": ("game_2048:Game2048Env", merge_state, merge_move, (340, 250, 340, 80), {
        "easy": dict(target_tile=64, max_turns=50), "hard": dict(target_tile=512, max_turns=50),
        "random": dict(target_tile=R, max_turns=R), "extreme-hard": dict(target_tile=2048, max_turns=100)}),
    "Wordle": ("wordle:WordleEnv", wordle_state, wordle_move, 340, {
        "easy": dict(word_length=3, max_turns=15), "hard": dict(word_length=5, max_turns=25),
        "random": dict(word_length=R, max_turns=R)}),
    "Hangman": ("hangman:HangmanEnv", hangman_state, hangman_move, 340, {
        "easy": dict(word_length=3, max_turns=10), "hard": dict(word_length=7, max_turns=20),
        "random": dict(word_length=R, max_turns=R)}),
}


def make(cls, kwargs):
    if kwargs != "draws":
        return cls(**kwargs)
    env = cls(num_rows=2, max_turns=10)
    env._is_random = True
    return env


def play(env, level, seed, state, move):
    env.reset(seed=seed)
    states, moves, rewards, flags = [state(env)], [], [], ""
    skill = player.choice([0.1, 0.5, 0.9])
    while True:
        luck = player.random()
        if luck < 0.01:
            action = player.choice(JUNK)
        else:
            action = move(env, "odd" if luck < 0.1 else "smart" if player.random() < skill else "plain")
        _, reward, terminated, truncated, _ = env.step(action)
        states.append(state(env))
        moves.append(action)
        rewards.append(reward)
        flags += "B" if truncated and terminated else "T" if terminated else "-"
        assert terminated or not truncated
        if terminated:
            digest = hashlib.md5("\n".join(states).encode()).hexdigest()
            return [level, seed, states[0], moves, rewards, flags, states[-1], digest]


def write(path, text):
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(text.encode())
    Path(path).write_bytes(buffer.getvalue())


def draws(seed):
    """Draws of every kind, one after the other, from one generator."""
    rng = random.Random(seed)
    items = list(range(50))
    shuffled = items[:13]
    rng.shuffle(shuffled)
    return dict(
        seed=str(seed), random=[rng.random() for _ in range(5)],
        randint=[[a, b, rng.randint(a, b)] for a, b in [(0, 0), (1, 10), (-5, 5), (0, 2**31), (3, 2**32 + 1), (7, 8)]],
        randrange=[[n, rng.randrange(n)] for n in [1, 2, 3, 1000, 2**32 - 1]],
        choice=[rng.choice("abcdefg") for _ in range(5)], shuffled=shuffled,
        sample=[[n, k, rng.sample(items[:n], k)] for n, k in [(6, 2), (8, 4), (50, 3), (50, 6), (21, 21), (22, 5), (50, 30)]],
        last=[rng.random() for _ in range(700)][-3:],
    )


out = Path(target)
out.mkdir(parents=True, exist_ok=True)
if not only or "random" in only:
    seeds = [0, 1, 42, -42, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**200 + 12345, 20261120]
    (out / "random.json").write_text(json.dumps([draws(seed) for seed in seeds]) + "\n")
for name, (entry, state, move, count, levels) in GAMES.items():
    if only and name not in only:
        continue
    module, cls = entry.split(":")
    if name in ("Wordle", "Hangman"):  # both ask for the corpus, which is there
        __import__("nltk").download = lambda _: True
    cls = getattr(__import__(f"gem.envs.game_env.{module}", fromlist=[cls]), cls)
    lines = []
    for i, (level, kwargs) in enumerate(levels.items()):
        env = make(cls, kwargs)
        for seed in range(count if isinstance(count, int) else count[i]):
            lines.append(play(env, level, seed, state, move))
    write(out / f"{name}.jsonl.gz", "".join(json.dumps(line) + "\n" for line in lines))
    ends = {f: sum(line[5][-1] == f for line in lines) for f in "TB"}
    wins = sum(line[5][-1] == "T" and line[4][-1] > 0 for line in lines)
    print(f"{name}: {len(lines)} games, {sum(len(line[3]) for line in lines)} moves, ended {ends}, wins {wins}",
          f"{(out / f'{name}.jsonl.gz').stat().st_size} bytes")
