# SPDX-License-Identifier: BSD-3-Clause
"""Reads and changes dynamic ELF files (64 bits, little-endian): the versions of symbols that a file needs from other
libraries, and the folders in which it looks for them."""

import struct

NEEDED, STRTAB, SYMTAB, RPATH, RUNPATH = 1, 5, 6, 15, 29
VERSYM, VERNEED, VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF


class NeededVersion:
    """One version that a file needs of a library, for example GLIBC_2.34 of libc.so.6."""

    def __init__(self, library, name, index, offset):
        self.library, self.name, self.index, self.offset = library, name, index, offset


class ElfFile:
    """The dynamic part of an ELF file. Changes are written by save()."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.segments = []
        self.dynamic = {}
        if not is_elf(path):
            raise ValueError(f"{path} is not an ELF file of 64 bits")
        offset, size, count = self._unpack("<Q", 32)[0], *self._unpack("<HH", 54)
        for i in range(count):
            kind, _, at, address, _, length = self._unpack("<IIQQQQ", offset + i * size)
            if kind == 1:
                self.segments.append((address, at, length))
        for i in range(count):
            kind, _, at, _, _, length = self._unpack("<IIQQQQ", offset + i * size)
            if kind == 2:
                self._read_dynamic(at, length)

    def _unpack(self, form, offset):
        return struct.unpack_from(form, self.data, offset)

    def _read_dynamic(self, at, length):
        for entry in range(at, at + length, 16):
            tag, value = self._unpack("<QQ", entry)
            if tag == 0:
                return
            self.dynamic.setdefault(tag, []).append(value)

    def _offset(self, address):
        for begin, at, length in self.segments:
            if begin <= address < begin + length:
                return at + address - begin
        raise ValueError(f"{self.path}: address {address:#x} is in no segment")

    def _string_at(self, offset):
        return self.data[offset : self.data.index(0, offset)].decode()

    def _string(self, index):
        return self._string_at(self._offset(self.dynamic[STRTAB][0]) + index)

    @property
    def libraries(self):
        """The names of the libraries that the loader opens for this file."""
        return [self._string(index) for index in self.dynamic.get(NEEDED, [])]

    def needed_versions(self):
        """The versions of symbols that this file needs."""
        result = []
        at = self._offset(self.dynamic[VERNEED][0]) if VERNEED in self.dynamic else 0
        for _ in range(self.dynamic.get(VERNEEDNUM, [0])[0]):
            _, count, library, first, following = self._unpack("<HHIII", at)
            entry = at + first
            for _ in range(count):
                _, _, index, name, next_entry = self._unpack("<IHHII", entry)
                result.append(NeededVersion(self._string(library), self._string(name), index & 0x7FFF, entry))
                entry += next_entry
            at += following
        return result

    def _symbols(self):
        """Yields the dynamic symbols: the name, whether this file defines the symbol, and the index of its version."""
        begin = self._offset(self.dynamic[SYMTAB][0])
        end = self._offset(self.dynamic[STRTAB][0])  # every linker puts the names behind the symbols
        versions = self._offset(self.dynamic[VERSYM][0]) if VERSYM in self.dynamic else None
        for i in range((end - begin) // 24):
            name, _, _, section = self._unpack("<IBBH", begin + 24 * i)
            version = self._unpack("<H", versions + 2 * i)[0] & 0x7FFF if versions else 1
            yield self._string(name), section != 0, version

    def symbols_of(self, version):
        """The names of the symbols that are needed in this version."""
        return [name for name, is_own, index in self._symbols() if index == version.index and not is_own]

    def own_symbols(self):
        """The names of the symbols that this file offers."""
        return [name for name, is_own, _ in self._symbols() if is_own]

    def ask_instead(self, version, other):
        """Asks for another version of the same library. The library need not have the symbols in that version, if another
        library without versions has them, which is opened before it: to the loader these fit every version."""
        code = self._unpack("<I", other.offset)[0]
        name = self._unpack("<I", other.offset + 8)[0]
        struct.pack_into("<I", self.data, version.offset, code)
        struct.pack_into("<I", self.data, version.offset + 8, name)

    def search_in(self, folder):
        """Replaces the folders that the build has written into the file; where these were shorter, removes them."""
        for tag in (RPATH, RUNPATH):
            for index in self.dynamic.get(tag, []):
                at = self._offset(self.dynamic[STRTAB][0]) + index
                length = self.data.index(0, at) - at
                text = folder.encode() if len(folder) <= length else b""
                self.data[at : at + length] = text + bytes(length - len(text))

    def save(self):
        with open(self.path, "r+b") as file:
            file.write(self.data)


def is_elf(path):
    """Whether the file is an ELF file of 64 bits."""
    with open(path, "rb") as file:
        return file.read(5) == b"\x7fELF\x02"
