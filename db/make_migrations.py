"""Writes the migrations, and the schema that all of them make of a new file, as C++ (sqlite_migrations.cc).

make_migrations.py OUTPUT migrations/0001_*.sql...

A new file takes the schema at once: most migrations alter what earlier ones made, for which SQLite parses the whole
schema each time, and that takes three times as long as the schema itself.
"""
import pathlib
import sqlite3
import sys

OUTPUT, *FILES = sys.argv[1:]
CODE = """// Written by db/make_migrations.py from db/migrations; edit those.
#include "db/sqlite_tables.h"

namespace coppice {{
namespace {{

constexpr const char* kMigrations[] = {{
{migrations}}};
constexpr char kNewestSchema[] = {schema};

}}  // namespace

absl::Span<const char* const> Migrations() {{ return kMigrations; }}
const char* NewestSchema() {{ return kNewestSchema; }}

}}  // namespace coppice
"""


def schema_of(migrations):
    database = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations:
        database.executescript(migration)
    made = database.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
    statements = []
    for kind, name, sql in made.fetchall():
        statements.append(sql)
        for row in database.execute(f'SELECT * FROM "{name}"') if kind == "table" else ():
            values = ", ".join(database.execute("SELECT quote(?)", (value,)).fetchone()[0] for value in row)
            statements.append(f'INSERT INTO "{name}" VALUES ({values})')
    return "".join(statement + ";\n" for statement in statements)


def literal(text):
    return f'R"sql({text})sql"'


texts = [pathlib.Path(file).read_text(encoding="utf-8") for file in FILES]
pathlib.Path(OUTPUT).write_text(CODE.format(migrations="".join(literal(text) + ",\n" for text in texts),
                                            schema=literal(schema_of(texts))), encoding="utf-8")
