// Notes, in memory. A pinned note comes first.

export type Note = { id: number; text: string; pinned?: boolean };

const notes: Note[] = [];

export function addNote(text: string): Note {
  const note = { id: notes.length + 1, text };
  notes.push(note);
  return note;
}

export function pinNote(id: number): void {
  const note = notes.find((one) => one.id === id);
  if (note) note.pinned = true;
}

export function listNotes(): Note[] {
  return [...notes].sort((a, b) => Number(b.pinned ?? false) - Number(a.pinned ?? false));
}
