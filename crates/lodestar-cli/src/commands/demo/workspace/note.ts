// Notes, in memory.

export type Note = { id: number; text: string };

const notes: Note[] = [];

export function addNote(text: string): Note {
  const note = { id: notes.length + 1, text };
  notes.push(note);
  return note;
}

export function listNotes(): Note[] {
  return [...notes];
}
