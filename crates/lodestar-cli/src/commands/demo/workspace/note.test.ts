test("addNote")
test("listNotes")
test("pinNote")
